"""Programs that write without end: agenteval stops to read, and the message names the program."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support import PATIENCE_S, agent_spec, answer

from agenteval.agents.mcp import McpConnection, ServerProgram
from agenteval.core.confine import MOST_BYTES, Lines, run_confined
from agenteval.core.errors import AgentError
from agenteval.suite.model_tools import McpServer

FLOOD = "import os\nwhile True:\n    os.write(1, b'x' * 65536)\n"

# A server that answers each request with this program, until a tool is called.
SERVER = """
import json, os, sys
ANSWERS = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "n", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]},
}
for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "tools/call":
        break
    if "id" in request:
        found = {"result": ANSWERS[request["method"]]} if request["method"] in ANSWERS else {
            "error": {"code": -32601, "message": "unknown"}
        }
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **found}), flush=True)
"""


def command_agent(directory: Path) -> Any:
    (directory / "flood.py").write_text(FLOOD, encoding="utf-8")
    return answer(agent_spec("command", [sys.executable, "flood.py"], directory))


def python_agent(directory: Path) -> Any:
    code = f"def reply(request):\n    return 'x' * {MOST_BYTES + 1}\n"
    (directory / "agent.py").write_text(code, encoding="utf-8")
    return answer(agent_spec("python", "agent:reply", directory, options={"interpreter": sys.executable}))


def mcp_server(directory: Path, code: str, call: Mapping[str, Any] | None = None) -> Any:
    (directory / "server.py").write_text(code, encoding="utf-8")
    server = McpServer("notes", "stdio", command=(sys.executable, "server.py"))

    async def opened() -> Any:
        connection = McpConnection(server, str(directory))
        try:
            (tool,) = await connection.open()
            return None if call is None else await tool.call(call)
        finally:
            await connection.close()

    async def within() -> Any:
        async with asyncio.timeout(PATIENCE_S):
            return await opened()

    return asyncio.run(within())


def mcp_server_at_its_start(directory: Path) -> Any:
    return mcp_server(directory, FLOOD)


def mcp_server_in_a_call(directory: Path) -> Any:
    return mcp_server(directory, SERVER + FLOOD, {})


def short_program(directory: Path) -> Any:
    return run_confined([sys.executable, "-c", FLOOD], directory, timeout_s=PATIENCE_S)


def short_programs_errors(directory: Path) -> Any:
    flood = FLOOD.replace("write(1", "write(2")
    return run_confined([sys.executable, "-c", flood], directory, timeout_s=PATIENCE_S)


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (command_agent, "the agent's command wrote more than 64 MiB"),
        (python_agent, "the agent's process wrote more than 64 MiB in one reply"),
        (mcp_server_at_its_start, "the MCP server 'notes' cannot be used: wrote more than 64 MiB in one message"),
        (mcp_server_in_a_call, "the MCP server 'notes' wrote more than 64 MiB in one message"),
        (short_program, f"{Path(sys.executable).name} wrote more than 64 MiB"),
        (short_programs_errors, f"{Path(sys.executable).name} wrote more than 64 MiB"),
    ],
)
def test_no_program_is_read_without_limit(tmp_path: Path, run: Callable[[Path], Any], said: str) -> None:
    with pytest.raises((AgentError, OSError), match=re.escape(said)):
        run(tmp_path)


@pytest.mark.long
def test_a_server_is_read_no_faster_than_its_messages_are_taken(tmp_path: Path) -> None:
    code = "for _ in range(4_000):\n    print('x' * 50_000)\nopen('all-written', 'w').close()\n"
    (tmp_path / "server.py").write_text(code, encoding="utf-8")
    program = ServerProgram(McpServer("notes", "stdio", command=(sys.executable, "server.py")), str(tmp_path))

    async def connect() -> None:
        async with program.connected():
            # Enough to write 200 MB.
            await asyncio.sleep(1)
            assert not (tmp_path / "all-written").exists()

    asyncio.run(connect())


def test_a_short_program_that_does_not_end_is_killed(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_confined([sys.executable, "-c", "import time; time.sleep(600)"], tmp_path, timeout_s=1)


@pytest.mark.parametrize("pieces", [["a\nb\n"], ["a", "\n", "b", "\n"], ["a\nb", "\nc"]])
def test_lines_do_not_depend_on_the_pieces(pieces: list[str]) -> None:
    found: list[bytes] = []
    lines = Lines(found.append, pytest.fail)
    for piece in pieces:
        lines.add(piece.encode())
    assert found == [b"a", b"b"]
