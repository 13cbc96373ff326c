"""Servers of tools that refuse the connection: the message has the address without secrets."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from tests.support import Answer, serving

from agenteval.agents.model.mcp import McpConnection
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

    with serving(lambda _: Answer("")) as service:
        # It answers no GET.
        address = service.url.replace("//", "//me:s3cret@") + "?key=s3cret"
        said = asyncio.run(opened(address))
    assert re.fullmatch(
        rf"the MCP server 'notes' cannot be used: {re.escape(service.url)} answered 501 Unsupported method \('GET'\)",
        said,
    )
