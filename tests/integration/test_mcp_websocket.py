"""Servers of tools over WebSockets: the SDK's own server behind a socket of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import WSMsgType, web
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.message import SessionMessage

from agenteval.agents.mcp import McpConnection
from agenteval.agents.mcp_program import parse_message
from agenteval.core.errors import AgentError
from agenteval.suite.model_tools import McpServer


def notes() -> MCPServer:
    server = MCPServer("notes")

    @server.tool()
    def look_up(word: str) -> list[str]:
        """What is known about a word."""
        return [f"A {word} costs 5 USD.", "ä" * 70_000]

    @server.tool()
    def fail() -> str:
        """Always fails."""
        raise ToolError("this tool always fails")

    return server


@asynccontextmanager
async def serving(seen: list[Any]) -> AsyncIterator[str]:
    """Serve the tools; ``seen`` gets the header and the protocol of each connection, and the end of it."""

    async def connected(request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != "Bearer t0ken":
            return web.Response(status=401)
        socket = web.WebSocketResponse(protocols=("mcp",))
        await socket.prepare(request)
        seen.append(socket.ws_protocol)
        arriving, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
        outgoing, leaving = anyio.create_memory_object_stream[SessionMessage]()

        async def write() -> None:
            async for each in leaving:
                await socket.send_str(each.message.model_dump_json(by_alias=True, exclude_unset=True))

        inner = notes()._lowlevel_server
        tasks = [
            asyncio.create_task(inner.run(incoming, outgoing, inner.create_initialization_options())),
            asyncio.create_task(write()),
        ]
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                await arriving.send(parse_message(message.data.encode()))
        seen.append("closed")
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for stream in (arriving, incoming, outgoing, leaving):
            await stream.aclose()
        return socket

    app = web.Application()
    app.router.add_get("/mcp", connected)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"ws://127.0.0.1:{runner.addresses[0][1]}/mcp"
    finally:
        await runner.cleanup()


def connection(url: str, directory: Path, **fields: Any) -> McpConnection:
    given: dict[str, Any] = {"headers": {"Authorization": "Bearer t0ken"}, **fields}
    return McpConnection(McpServer("notes", "websocket", url=url, **given), str(directory))


def test_tools_are_listed_and_called(tmp_path: Path) -> None:
    seen: list[Any] = []

    async def run() -> None:
        async with serving(seen) as url:
            opened = connection(url, tmp_path)
            tools = {tool.name: tool for tool in await opened.open()}
            assert tools.keys() == {"look_up", "fail"}
            assert await tools["look_up"].call({"word": "nut"}) == ["A nut costs 5 USD.", "ä" * 70_000]
            with pytest.raises(AgentError, match="this tool always fails"):
                await tools["fail"].call({})
            await opened.close()

    asyncio.run(run())
    assert seen == ["mcp", "closed"]


def test_a_server_that_cannot_be_used_is_told_without_secrets(tmp_path: Path) -> None:
    async def failure(url: str, **fields: Any) -> str:
        opened = connection(url, tmp_path, **fields)
        with pytest.raises(AgentError) as caught:
            await opened.open()
        await opened.close()
        return str(caught.value)

    async def run() -> tuple[str, str]:
        async with serving([]) as url:
            refused = await failure(f"{url}?key=s3cret", headers={})
        return refused, await failure(f"{url}?key=s3cret")

    refused, gone = asyncio.run(run())
    assert refused.startswith("the MCP server 'notes' cannot be used: ws://127.0.0.1:")
    assert refused.endswith("/mcp answered 401, not with a WebSocket")
    assert gone.startswith("the MCP server 'notes' cannot be used: ")
    assert "s3cret" not in refused + gone
