"""A server in the loop of a test, none of whose connections outlives it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def tcp_server(
    handle: Handler, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """The port of a server. A connection is cut when its handler has ended, or at the end of the context."""
    served: list[tuple[asyncio.Task[None], asyncio.StreamWriter]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                await handle(reader, writer)
        finally:
            writer.transport.abort()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append((asyncio.create_task(serve(reader, writer)), writer))

    server = await asyncio.start_server(connected, host, 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task, writer in served:
            task.cancel()
            writer.transport.abort()
        outcomes = await asyncio.gather(*(task for task, _ in served), return_exceptions=True)
        # A transport that is not closed before its loop is a warning in whatever test runs by then.
        for _, writer in served:
            with suppress(OSError):
                await writer.wait_closed()
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
