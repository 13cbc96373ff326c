"""Servers of tools that refuse the connection: the message has the address without secrets."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Literal

import pytest
from tests.support import Answer, serving

from agenteval.agents.mcp import McpConnection
from agenteval.core.errors import AgentError
from agenteval.suite.model_tools import McpServer


def test_a_refused_connection_is_told_without_secrets(tmp_path: Path) -> None:
    async def opened(url: str) -> str:
        connection = McpConnection(McpServer("notes", "sse", url=url), str(tmp_path))
        try:
            with pytest.raises(AgentError) as caught:
                await connection.open()
        finally:
            await connection.close()
        return str(caught.value)

    with serving(lambda _: Answer("", status=501)) as service:
        address = service.url.replace("//", "//me:s3cret@") + "?key=s3cret"
        said = asyncio.run(opened(address))
    assert re.fullmatch(
        rf"the MCP server 'notes' cannot be used: {re.escape(service.url)} answered 501 Not Implemented",
        said,
    )


def test_localhost_in_the_container_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def opened(url: str, transport: Literal["http", "sse"]) -> str:
        connection = McpConnection(McpServer("notes", transport, url=url), str(tmp_path))
        try:
            with pytest.raises(AgentError) as caught:
                await connection.open()
        finally:
            await connection.close()
        return str(caught.value)

    with serving(lambda _: Answer("")) as service:
        refused = service.url
        monkeypatch.setenv("AGENTEVAL_CONTAINER", "1")
        # It answers, so it is not out of reach.
        assert "localhost is its container" not in asyncio.run(opened(refused, "sse"))
    transports: tuple[Literal["http", "sse"], ...] = ("http", "sse")
    for transport in transports:
        monkeypatch.setenv("AGENTEVAL_CONTAINER", "1")
        said = asyncio.run(opened(refused, transport))
        assert "in the action, localhost is its container, not the machine of the job" in said, transport
        monkeypatch.delenv("AGENTEVAL_CONTAINER")
        assert "localhost is its container" not in asyncio.run(opened(refused, transport)), transport
