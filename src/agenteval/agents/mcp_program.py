"""Servers of tools that are programs: messages as lines on their standard streams."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from agenteval.agents.base import MOST_OF_STREAM, check_size
from agenteval.core.child import LAST_WORDS_S, Child, LastOutput, find_program
from agenteval.core.confine import WROTE_TOO_MUCH, Lines, user_environment
from agenteval.core.errors import AgentError
from agenteval.suite.model_tools import McpServer

# Time in seconds that a server has to end after its standard input is closed.
_GRACE_S = 2.0


class ServerProgram:
    """The program of a server in one conversation.

    Its output is read no faster than the client takes its messages.

    Attributes:
        problem: what the program did wrong; empty if nothing.
    """

    def __init__(self, server: McpServer, directory: str) -> None:
        self._server = server
        self._directory = directory
        self._child: Child | None = None
        self._decoder = codecs.getincrementaldecoder(server.encoding)("replace")
        self._lines = Lines(self._arrived, self._exceeded)
        # `None` is the end.
        self._waiting: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.problem = ""
        self.errors = LastOutput()

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[tuple[Any, Any]]:
        """Start the program, and end it with its descendants.

        Yields:
            The stream of its messages, and the stream for messages to it.

        Raises:
            OSError: the program cannot be started.
        """
        environment = user_environment(self._server.env)
        name, *arguments = self._server.command
        program = find_program(name, self._directory, environment.get("PATH"), self._server.where)
        child = self._child = await Child.start(
            (program, *arguments), self._directory, environment, self._receive, self.errors.add
        )
        arriving, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
        outgoing, leaving = anyio.create_memory_object_stream[SessionMessage]()
        tasks = [asyncio.create_task(self._read(child, arriving)), asyncio.create_task(self._write(child, leaving))]
        try:
            yield incoming, outgoing
        finally:
            with anyio.CancelScope(shield=True):
                await _ended(child)
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
                for stream in (arriving, incoming, outgoing, leaving):
                    await stream.aclose()

    def _receive(self, data: bytes) -> None:
        text = self._decoder.decode(data, final=not data)
        self._lines.add(text.encode("utf-8", "replace"))
        if not data:
            self._waiting.put_nowait(None)

    def _arrived(self, line: bytes) -> None:
        self._waiting.put_nowait(line)
        if self._child is not None:
            self._child.pause_output()

    def _exceeded(self) -> None:
        self.problem = f"{WROTE_TOO_MUCH} in one message"
        if self._child is not None:
            self._child.kill()

    async def _read(self, child: Child, arriving: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        async with arriving:
            while True:
                if self._waiting.empty():
                    child.resume_output()
                line = await self._waiting.get()
                if line is None:
                    return
                try:
                    await arriving.send(_parse_message(line))
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return

    async def _write(self, child: Child, leaving: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with leaving:
            async for each in leaving:
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                child.write(f"{text}\n".encode(self._server.encoding, "replace"))


def _parse_message(line: bytes) -> SessionMessage | Exception:
    """Return a message, or the error of the line, which the client handles."""
    try:
        check_size(line, MOST_OF_STREAM)
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except (ValueError, AgentError) as error:
        return error


async def _ended(child: Child) -> None:
    """Close the program's input, and end it if it does not end by itself."""
    try:
        child.end_input()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_S):
                await child.wait()
        child.end()
        await child.wait()
        # Background processes keep the output open, so they are killed.
        child.kill()
        child.resume_output()
        await child.wait_for_output(LAST_WORDS_S)
    finally:
        await child.close()
