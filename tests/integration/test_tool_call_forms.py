"""Tool calls in the forms of the APIs of models, from a function."""

from __future__ import annotations

import json
from typing import Any

from tests.support import answer

from agenteval.agents.base import Request
from agenteval.agents.callable import callable_spec

ARGS = {"item": "bolt"}
CALLS: list[dict[str, Any]] = [
    {"id": "1", "type": "function", "function": {"name": "price_of", "arguments": json.dumps(ARGS)}},
    {"role": "tool", "tool_call_id": "1", "content": "5 USD"},
    {"type": "tool_use", "id": "2", "name": "stock_of", "input": ARGS},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "2", "content": "7"}]},
]
REPLY = {"response": "5 USD", "tool_calls": CALLS}


def test_a_function_may_return_the_calls_of_an_api() -> None:
    def agent(_request: Request) -> Any:
        return REPLY

    assert [(call.name, call.args, call.result) for call in answer(callable_spec(agent)).tool_calls] == [
        ("price_of", ARGS, "5 USD"),
        ("stock_of", ARGS, "7"),
    ]
