"""Connections to servers that provide tools over the Model Context Protocol (https://modelcontextprotocol.io)."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import MCPError
from mcp.client.client import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import (
    CallToolResult,
    EmbeddedResource,
    ResourceLink,
    TextContent,
    TextResourceContents,
    jsonrpc_message_adapter,
)

from agenteval.agents.base import check_size
from agenteval.agents.http_response import MAX_BYTES
from agenteval.agents.model_client import ModelTool
from agenteval.core.child import LAST_WORDS_S, Child, LastOutput, find_program
from agenteval.core.confine import WROTE_TOO_MUCH, Lines, check_access, user_environment
from agenteval.core.errors import AgentError
from agenteval.core.escape import display_url
from agenteval.core.runtime import localhost_hint
from agenteval.core.secrets import shortened
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
                    check_size(line)
                    await arriving.send(_parse_message(line))
                except AgentError as error:
                    self.problem = f"sent what cannot be read: {error}"
                    child.kill()
                    return
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return

    async def _write(self, child: Child, leaving: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with leaving:
            async for each in leaving:
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                child.write(f"{text}\n".encode(self._server.encoding, "replace"))


def _parse_message(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


class _LimitedClient(httpx2.AsyncClient):
    """Reads no more of a response than a reply may have; the library itself limits the events of streams."""

    def __init__(self, refused: Callable[[str], None], **options: Any) -> None:
        super().__init__(**options)
        self._refused = refused

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        response = await super().send(request, **{**options, "stream": True})
        if response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            return response
        content = bytearray()
        status = response.status_code
        try:
            async for piece in response.aiter_bytes():
                content += piece
                if len(content) > MAX_BYTES:
                    raise AgentError(f"answered more than {MAX_BYTES // 2**20} MiB")
            check_size(bytes(content))
        except AgentError as error:
            self._refused(f"sent what cannot be read: {error}")
            content, status = bytearray(), 413
        finally:
            await response.aclose()
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in _OF_BODY]
        return httpx2.Response(status, headers=headers, content=bytes(content), request=request)


# Headers of a body as it was sent, which the unpacked body no longer has.
_OF_BODY = frozenset({"content-encoding", "content-length", "transfer-encoding"})


async def _ended(child: Child) -> None:
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


# The library logs the messages of servers; without a handler they would be printed.
for _name in ("mcp", "client"):
    logging.getLogger(_name).addHandler(logging.NullHandler())

# Providers' restrictions of tool names.
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
_MOST_PAGES = 100
_MOST_TOOLS = 2_000
_SHOWN = 300


def check_server(server: McpServer, directory: str) -> None:
    """Check, before any case runs, that the program of a server exists and may be started.

    Raises:
        ConfigError: the program does not exist.
        UserCodeError: the user of user code may not execute it, or may not enter the directory.
    """
    if server.transport == "stdio":
        path = user_environment(server.env).get("PATH")
        check_access(find_program(server.command[0], directory, path, server.where), directory, server.where)


class McpConnection:
    """A server process or connection of one conversation.

    It runs in a separate task, because the library's contexts must be exited in the task that entered them.
    """

    def __init__(self, server: McpServer, directory: str) -> None:
        self._server = server
        self._program = ServerProgram(server, directory)
        self._done = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._connected = False

    async def open(self) -> list[ModelTool]:
        """Connect, and return the tools of the server."""
        ready: asyncio.Future[list[ModelTool]] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold(ready))
        return await ready

    async def close(self) -> None:
        """Close the connection, and end the server process with its descendants."""
        self._done.set()
        if self._task is not None:
            if not self._connected:
                self._task.cancel()
            await asyncio.wait([self._task])

    async def _hold(self, ready: asyncio.Future[list[ModelTool]]) -> None:
        try:
            limit = self._server.request_timeout_s
            async with (
                self._transport() as transport,
                Client(transport, read_timeout_seconds=limit) as client,
            ):
                # A pattern in the server's schema of its results can take for ever on a result that it chooses.
                client.session.validate_tool_result = _unchecked  # type: ignore[method-assign,assignment]
                tools = await self._tools(client)
                self._connected = True
                if not ready.done():
                    ready.set_result(tools)
                await self._done.wait()
        except Exception as error:  # noqa: BLE001 - a failure affects this conversation only
            if not ready.done():
                message = f"the MCP server {self._server.name!r} cannot be used: {self._failure(error)}"
                said = self._program.errors.text()
                ready.set_exception(AgentError(f"{message}: {said}" if said else message))

    def _failure(self, error: BaseException) -> str:
        hint = (
            localhost_hint(self._server.url or "") if isinstance(_first(error), httpx2.ConnectError | OSError) else ""
        )
        return self._program.problem or f"{_cause(error)}{hint}"

    @contextlib.asynccontextmanager
    async def _transport(self) -> AsyncIterator[AbstractAsyncContextManager[Any]]:
        server = self._server
        if server.transport == "stdio":
            yield self._program.connected()
        elif server.transport == "sse":
            yield sse_client(
                server.url,
                headers=dict(server.headers),
                timeout=server.connect_timeout_s,
                sse_read_timeout=server.read_timeout_s,
                httpx_client_factory=self._client,
            )
        else:
            timeout = httpx2.Timeout(server.connect_timeout_s, read=server.read_timeout_s)
            async with self._client(headers=dict(server.headers), timeout=timeout) as http:
                yield streamable_http_client(server.url, http_client=http)

    def _client(
        self, headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None, auth: Any = None
    ) -> httpx2.AsyncClient:
        def refused(problem: str) -> None:
            self._program.problem = problem

        return _LimitedClient(refused, headers=headers, timeout=timeout, auth=auth)

    async def _tools(self, client: Client) -> list[ModelTool]:
        allowed = self._server.allowed_tools
        if allowed is not None and not allowed:
            return []
        offered = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            offered += page.tools
            if len(offered) > _MOST_TOOLS:
                raise AgentError(f"it offers more than {_MOST_TOOLS:,} tools")
            cursor = page.next_cursor
            if cursor is None:
                break
        return [
            self._tool(client, tool.name, tool.description or "", tool.input_schema)
            for tool in offered
            if allowed is None or tool.name in allowed
        ]

    def _tool(self, client: Client, name: str, description: str, schema: Mapping[str, Any]) -> ModelTool:
        async def call(arguments: Mapping[str, Any]) -> Any:
            try:
                result = await client.call_tool(name, dict(arguments))
            except MCPError as error:
                if not self._program.problem:
                    raise AgentError(error.message) from None
                raise AgentError(f"the MCP server {self._server.name!r} {self._program.problem}") from None
            except (httpx2.HTTPError, RuntimeError) as error:
                raise AgentError(f"the MCP server {self._server.name!r} failed: {self._failure(error)}") from None
            value = content_of(result)
            if result.is_error:
                said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                raise AgentError(said if value else f"{name} failed without an error message")
            return value

        return ModelTool(model_name(name), description, schema, self._server.is_retrieval, call)


async def _unchecked(_name: str, _result: object) -> None:
    """Accept every result: metrics judge what agents make of it."""


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


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _cause(error: BaseException) -> str:
    error = _first(error)
    if isinstance(error, httpx2.HTTPStatusError):
        # Its own text has the address, which may contain secrets.
        shown, reply = display_url(str(error.request.url)), error.response
        return shortened(f"{shown} answered {reply.status_code} {reply.reason_phrase}", _SHOWN)
    return shortened(str(error), _SHOWN) or type(error).__name__
