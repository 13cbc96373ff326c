"""Connections to MCP servers over WebSockets: a message of the protocol is one text message of the socket."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import aiohttp
import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from agenteval.agents.mcp_program import parse_message
from agenteval.core.confine import MOST_BYTES
from agenteval.core.escape import display_url
from agenteval.suite.model_tools import McpServer

# The name of the protocol in the opening of a connection.
_PROTOCOL = "mcp"

Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


@contextlib.asynccontextmanager
async def websocket_client(server: McpServer) -> AsyncIterator[Streams]:
    """Connect to a server.

    Yields:
        The stream of its messages, and the stream for messages to it.

    Raises:
        aiohttp.ClientError: the server cannot be reached.
        RuntimeError: it refuses the connection, or does not answer in time.
    """
    async with aiohttp.ClientSession(headers=server.headers) as client:
        socket = await _connected(client, server)
        arriving, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
        outgoing, leaving = anyio.create_memory_object_stream[SessionMessage]()
        tasks = [asyncio.create_task(_read(socket, arriving)), asyncio.create_task(_write(socket, leaving))]
        try:
            yield incoming, outgoing
        finally:
            with anyio.CancelScope(shield=True):
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
                await socket.close()
                for stream in (arriving, incoming, outgoing, leaving):
                    await stream.aclose()


async def _connected(client: aiohttp.ClientSession, server: McpServer) -> aiohttp.ClientWebSocketResponse:
    try:
        async with asyncio.timeout(server.connect_timeout_s):
            return await client.ws_connect(server.url, protocols=(_PROTOCOL,), max_msg_size=MOST_BYTES)
    except aiohttp.WSServerHandshakeError as error:
        # Its text contains the whole address.
        raise RuntimeError(f"{display_url(server.url)} answered {error.status}, not with a WebSocket") from None
    except TimeoutError:
        raise RuntimeError(f"{display_url(server.url)} did not answer in {server.connect_timeout_s:g} s") from None


async def _read(
    socket: aiohttp.ClientWebSocketResponse, arriving: MemoryObjectSendStream[SessionMessage | Exception]
) -> None:
    async with arriving:
        async for message in socket:
            if message.type is not aiohttp.WSMsgType.TEXT:
                continue
            try:
                await arriving.send(parse_message(message.data.encode("utf-8", "replace")))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return


async def _write(socket: aiohttp.ClientWebSocketResponse, leaving: MemoryObjectReceiveStream[SessionMessage]) -> None:
    async with leaving:
        async for each in leaving:
            await socket.send_str(each.message.model_dump_json(by_alias=True, exclude_unset=True))
