"""Connections to servers that offer tools by the Model Context Protocol (https://modelcontextprotocol.io)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx2
from mcp import MCPError, StdioServerParameters, stdio_client
from mcp.client.client import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, EmbeddedResource, ResourceLink, TextContent, TextResourceContents

from agenteval.agents.model.tools import Tool
from agenteval.core.errors import AgentError
from agenteval.core.process.child import STDERR_CHUNKS, find_program, tail
from agenteval.core.process.confinement import launch, user_environment
from agenteval.core.process.process_groups import free_mark, kill_marked
from agenteval.suite.model_tools import McpServer

# The library logs messages of servers; without a handler they would be printed.
for _name in ("mcp", "client"):
    logging.getLogger(_name).addHandler(logging.NullHandler())

# Providers' restrictions of tool names.
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
_MOST_PAGES = 100
_CHUNK = 65536


def check_server(server: McpServer, directory: str) -> None:
    """Check, before any case runs, that the program of a server exists.

    Raises:
        ConfigError: the program does not exist.
    """
    if server.transport == "stdio":
        find_program(server.command[0], directory, user_environment(server.env).get("PATH"), server.where)


class McpConnection:
    """A server process or connection of one conversation.

    It runs in a separate task, since the library's contexts must be left in the task that entered them.
    """

    def __init__(self, server: McpServer, directory: str) -> None:
        self._server = server
        self._directory = directory
        self._done = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._connected = False

    async def open(self) -> list[Tool]:
        """Connect, and list what the server offers.

        Raises:
            AgentError: the server cannot be started or reached, or violates the protocol.
        """
        ready: asyncio.Future[list[Tool]] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold(ready))
        return await ready

    async def close(self) -> None:
        """End the connection, and the process with all it started."""
        self._done.set()
        if self._task is not None:
            if not self._connected:
                self._task.cancel()
            await asyncio.wait([self._task])

    async def _hold(self, ready: asyncio.Future[list[Tool]]) -> None:
        with _ErrorOutput() as errors:
            try:
                limit = self._server.request_timeout_s
                async with (
                    self._transport(errors) as transport,
                    Client(transport, read_timeout_seconds=limit) as client,
                ):
                    tools = await self._tools(client)
                    self._connected = True
                    if not ready.done():
                        ready.set_result(tools)
                    await self._done.wait()
            except Exception as error:  # noqa: BLE001 - a failure affects this conversation only
                if not ready.done():
                    message = f"the MCP server {self._server.name!r} cannot be used: {_cause(error)}"
                    ready.set_exception(AgentError(f"{message}: {said}" if (said := errors.end()) else message))

    @contextlib.asynccontextmanager
    async def _transport(self, errors: _ErrorOutput) -> AsyncIterator[AbstractAsyncContextManager[Any]]:
        server = self._server
        if server.transport == "stdio":
            environment = user_environment(server.env)
            program = find_program(server.command[0], self._directory, environment.get("PATH"), server.where)
            started = launch((program, *server.command[1:]), environment)
            parameters = StdioServerParameters(
                command=started.argv[0],
                args=list(started.argv[1:]),
                env=dict(started.environment),
                cwd=self._directory,
                encoding=server.encoding,
                encoding_error_handler="replace",
            )
            try:
                yield stdio_client(parameters, errlog=errors.file)
            finally:
                if started.mark is not None:
                    kill_marked(started.mark, None)
                    free_mark(started.mark)
        elif server.transport == "sse":
            yield sse_client(
                server.url,
                headers=dict(server.headers),
                timeout=server.connect_timeout_s,
                sse_read_timeout=server.read_timeout_s,
            )
        else:
            timeout = httpx2.Timeout(server.connect_timeout_s, read=server.read_timeout_s)
            async with httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout) as http:
                yield streamable_http_client(server.url, http_client=http)

    async def _tools(self, client: Client) -> list[Tool]:
        allowed = self._server.allowed_tools
        if allowed is not None and not allowed:
            return []
        offered = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            offered += page.tools
            cursor = page.next_cursor
            if cursor is None:
                break
        return [
            self._tool(client, tool.name, tool.description or "", tool.input_schema)
            for tool in offered
            if allowed is None or tool.name in allowed
        ]

    def _tool(self, client: Client, name: str, description: str, schema: Mapping[str, Any]) -> Tool:
        async def call(arguments: Mapping[str, Any]) -> Any:
            try:
                result = await client.call_tool(name, dict(arguments))
            except MCPError as error:
                raise AgentError(error.message) from None
            except (httpx2.HTTPError, RuntimeError) as error:
                raise AgentError(f"the MCP server {self._server.name!r} failed: {_cause(error)}") from None
            value = content_of(result)
            if result.is_error:
                said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                raise AgentError(said if value else f"{name} failed without an error message")
            return value

        return Tool(model_name(name), description, schema, self._server.is_retrieval, call)


class _ErrorOutput:
    """The end of a server's error output; the rest is discarded."""

    def __init__(self) -> None:
        self._read, write = os.pipe()
        os.set_blocking(self._read, False)
        self.file = os.fdopen(write, "w", encoding="utf-8")
        self._chunks: deque[bytes] = deque(maxlen=STDERR_CHUNKS)

    def __enter__(self) -> _ErrorOutput:
        asyncio.get_running_loop().add_reader(self._read, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_reader(self._read)
        os.close(self._read)
        self.file.close()

    def end(self) -> str:
        """The last lines, for a message."""
        self._receive()
        return tail(b"".join(self._chunks))

    def _receive(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._chunks.append(os.read(self._read, _CHUNK))


def model_name(name: str) -> str:
    """Return the name of a server's tool in the form that providers accept."""
    return _NOT_IN_NAMES.sub("_", name)[:_LONGEST_NAME]


def content_of(result: CallToolResult) -> Any:
    """Return the text of a tool's result, a list if it has several blocks; else its structured content."""
    blocks = [_block_text(block) for block in result.content]
    if not blocks and result.structured_content is not None:
        return result.structured_content
    return blocks[0] if len(blocks) == 1 else blocks


def _block_text(block: Any) -> str:
    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, EmbeddedResource) and isinstance(block.resource, TextResourceContents):
        return block.resource.text
    if isinstance(block, ResourceLink):
        return str(block.uri)
    return f"[{getattr(block, 'mime_type', None) or 'binary content'}]"


def _cause(error: BaseException) -> str:
    """Return the text of the first error in nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
