"""An HTTP service that knows nothing of agenteval: evaluated without an adapter, and looked at with `probe`."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.mistakes import shown
from tests.support import (
    Ended,
    agenteval,
    environment,
    eventually,
    free_port,
    is_listening,
    listening,
)

# The service answers below nested keys, and lists its tool calls as OpenAI's API does.
SERVICE = """
import json
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

PRICES = {"bolt": "5 USD", "nut": "2 USD"}


def answered(query):
    item = query.split()[-1].rstrip("?")
    function = {"name": "price_of", "arguments": json.dumps({"item": item})}
    return f"A {item} costs {PRICES[item]}.", [{"id": "call_1", "type": "function", "function": function}]


async def chat(request):
    body = await request.json()
    assert body["options"] == {"depth": 2}, body
    text, calls = answered(body["conversation"][-1]["content"])
    cost = {"in": 10, "out": len(body["conversation"])}
    return JSONResponse({"data": {"reply": {"text": text}, "trace": {"calls": calls}}, "cost": cost})


async def stream(request):
    text, calls = answered(request.query_params["q"])

    async def pieces():
        yield "data: " + json.dumps({"trace": calls}) + "\\n\\n"
        for word in text.split(" "):
            yield "data: " + json.dumps({"token": word if word == "A" else " " + word}) + "\\n\\n"

    return StreamingResponse(pieces(), media_type="text/event-stream")


app = Starlette(routes=[Route("/chat", chat, methods=["POST"]), Route("/stream", stream)])
uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="error")
"""
CHAT = """
agents:
  default:
    http: http://127.0.0.1:{port}/chat
    headers: {{Authorization: "Bearer 0123456789abcdef"}}
    body:
      conversation: "{{messages}}"
      options: {{depth: "{{config.depth}}"}}
    response:
      answer: data.reply.text
      tool_calls: data.trace.calls
      usage: {{input_tokens: cost.in, output_tokens: cost.out}}
    config: {{depth: 2}}
"""
SUITE: Mapping[str, Any] = {
    "evaluations": {"metrics": [{"type": "standard", "metric": "equality"}]},
    "test_cases": [
        {
            "name": item,
            "input": f"What costs a {item}?",
            "ground_truth": f"A {item} costs {price}.",
            "expected_tools": [{"name": "price_of", "args": {"item": item}}],
        }
        for item, price in (("bolt", "5 USD"), ("nut", "2 USD"))
    ],
}


@contextmanager
def service(directory: Path) -> Iterator[int]:
    """Run the service; yield its port."""
    port = free_port()
    file = directory / "service.py"
    file.write_text(SERVICE.replace("PORT", str(port)), encoding="utf-8")
    process = subprocess.Popen([sys.executable, str(file)], env=environment())
    try:
        assert eventually(lambda: process.poll() is not None or is_listening(port))
        yield port
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with service(tmp_path_factory.mktemp("service")) as port:
        yield port


def project(directory: Path, config: str, port: int) -> None:
    """Write a suite and the configuration of its agent."""
    (directory / "agent.yaml").write_text(yaml.safe_dump(SUITE), encoding="utf-8")
    (directory / "agenteval.yaml").write_text(config.format(port=port), encoding="utf-8")


def run(directory: Path, config: str, port: int, *command: str) -> Ended:
    """Run a command on a suite with an agent; default: evaluate it."""
    project(directory, config, port)
    return agenteval(*(command or ("run",)), cwd=directory)


def test_probe_says_which_keys_exist_and_what_would_find_the_calls(tmp_path: Path, port: int) -> None:
    config = CHAT.replace("reply.text", "reply.txt").replace("data.trace.calls", "data.calls")
    ended = run(tmp_path, config, port, "probe")
    assert ended.status == 3
    assert "no 'txt' (response.answer 'data.reply.txt'); 'data.reply' is an object with the keys text" in ended.out
    assert (
        "no 'calls' (response.tool_calls 'data.calls'); 'data' is an object with the keys reply, trace" in ended.out
    )
    ended = run(tmp_path, config.replace("reply.txt", "reply.text"), port, "probe", "--input", "What costs a bolt?")
    assert ended.status == 0
    assert "this finds them: response: {tool_calls: data.trace.calls}" in ended.out


def test_secrets_of_a_request_are_not_shown(tmp_path: Path, port: int) -> None:
    body = '      options: {{depth: "{{config.depth}}"}}\n'
    config = CHAT.replace(body, f"{body}      api_key: k-fedcba9876543210\n")
    variables = environment(SHOP_TOKEN="t-0123456789")
    project(tmp_path, config.replace("Bearer 0123456789abcdef", "Bearer ${{SHOP_TOKEN}}"), port)
    ended = agenteval("probe", cwd=tmp_path, env=variables)
    assert ended.status == 0, ended.text
    assert '"api_key": "***"' in ended.out
    assert "0123456789" not in ended.text
    assert "fedcba" not in ended.text
    project(tmp_path, config.replace("k-fedcba9876543210", "${{SHOP_TOKEN}}"), port)
    for command in ("probe", "validate", "run"):
        ended = agenteval(command, cwd=tmp_path, env={**variables, "CI": "true"})
        assert ended.status == 2
        line = "api_key: environment variable SHOP_TOKEN is not passed to agents and suites in a CI run"
        assert any(mistake.says(line) for mistake in shown(ended.err)), ended.err
        assert "^ agents.default.body.api_key" in ended.err


class Endless(BaseHTTPRequestHandler):
    """Sends a stream that does not end."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        with suppress(OSError):
            while True:
                self.wfile.write(b'data: {"token": "x"}\n\n')
                time.sleep(0.05)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Print nothing."""


def test_a_stream_without_end_has_the_time_limit_of_a_turn(tmp_path: Path) -> None:
    config = "agents: {{default: {{http: '{port}', response: {{answer: token}}, timeout: 500ms}}}}\n"
    with listening(Endless) as url:
        (tmp_path / "agent.yaml").write_text(yaml.safe_dump(SUITE), encoding="utf-8")
        (tmp_path / "agenteval.yaml").write_text(config.format(port=url), encoding="utf-8")
        ended = agenteval("run", cwd=tmp_path)
    assert ended.status == 3
    assert "could not be run: 2 cases, all for the same reason" in ended.out
    assert ended.text.count("within 0.5 s") == 1
