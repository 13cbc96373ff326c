"""Tool calls in the forms of the APIs of models, from every kind of agent."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support import Answer, agent_spec, answer, serving

from agenteval.agents.base import Reply, Request
from agenteval.agents.callable import callable_spec

ARGS = {"item": "bolt"}
CALLS: list[dict[str, Any]] = [
    {"id": "1", "type": "function", "function": {"name": "price_of", "arguments": json.dumps(ARGS)}},
    {"role": "tool", "tool_call_id": "1", "content": "5 USD"},
    {"type": "tool_use", "id": "2", "name": "stock_of", "input": ARGS},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "2", "content": "7"}]},
]
REPLY = {"response": "5 USD", "tool_calls": CALLS}


def over_http(directory: Path) -> Reply:
    with serving(lambda _: Answer(REPLY)) as service:
        return answer(agent_spec("http", service.url, directory))


def of_a_command(directory: Path) -> Reply:
    code = f"import json; print(json.dumps({REPLY!r}))"
    return answer(agent_spec("command", [sys.executable, "-c", code], directory))


def of_python(directory: Path) -> Reply:
    (directory / "agent.py").write_text(f"def reply(request):\n    return {REPLY!r}\n", encoding="utf-8")
    return answer(agent_spec("python", "agent:reply", directory, options={"interpreter": sys.executable}))


def of_a_recording(directory: Path) -> Reply:
    line = json.dumps({"case": "case", **REPLY})
    (directory / "answers.jsonl").write_text(f"{line}\n", encoding="utf-8")
    return answer(agent_spec("replay", str(directory / "answers.jsonl"), directory))


def of_a_function(directory: Path) -> Reply:
    def agent(_request: Request) -> Any:
        return REPLY

    return answer(callable_spec(agent))


@pytest.mark.parametrize("reply_of", [over_http, of_a_command, of_python, of_a_recording, of_a_function])
def test_every_agent_may_return_the_calls_of_an_api(tmp_path: Path, reply_of: Any) -> None:
    calls = reply_of(tmp_path).tool_calls
    assert [(call.name, call.args, call.result) for call in calls] == [
        ("price_of", ARGS, "5 USD"),
        ("stock_of", ARGS, "7"),
    ]
