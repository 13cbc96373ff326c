"""Tool calls in the forms of the APIs of models."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.agents.base import reply_from_json
from agenteval.agents.tool_calls import calls_in, is_call, protocol_calls
from agenteval.core.errors import AgentError

ARGS = {"item": "bolt"}
TEXT = json.dumps(ARGS)
WITH_RESULT = [{"name": "price_of", "args": ARGS, "result": "5 USD"}]

# Each of them is one call of a tool with its result.
FORMS: dict[str, list[dict[str, Any]]] = {
    "openai call with its result": [
        {"id": "call_1", "function": {"name": "price_of", "arguments": TEXT}, "output": "5 USD"}
    ],
    "openai functions": [
        {"role": "assistant", "content": None, "function_call": {"name": "price_of", "arguments": TEXT}},
        {"role": "function", "name": "price_of", "content": "5 USD"},
    ],
    # LangChain lists the calls of Anthropic's models in both places.
    "langchain with anthropic": [
        {
            "type": "ai",
            "content": [{"type": "tool_use", "id": "1", "name": "price_of", "input": ARGS}],
            "tool_calls": [{"name": "price_of", "args": ARGS, "id": "1"}],
        },
        {"type": "tool", "tool_call_id": "1", "content": "5 USD"},
    ],
    "ag-ui": [
        {
            "role": "assistant",
            "toolCalls": [{"id": "1", "type": "function", "function": {"name": "price_of", "arguments": TEXT}}],
        },
        {"role": "tool", "toolCallId": "1", "content": "5 USD"},
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_call(form: str) -> None:
    assert protocol_calls(FORMS[form]) == WITH_RESULT
    assert calls_in([{"other": 1}, "text", *FORMS[form]]) == WITH_RESULT
    assert any(map(is_call, FORMS[form]))
    (call,) = reply_from_json({"response": "", "tool_calls": FORMS[form]}).tool_calls
    assert (call.name, call.args, call.result) == ("price_of", ARGS, "5 USD")


@pytest.mark.parametrize(
    ("item", "call"),
    [
        ({"name": "stop"}, {"name": "stop", "args": None}),
        ({"name": "stop", "args": ["a"]}, {"name": "stop", "args": ["a"]}),
        ({"name": "say", "args": "not JSON"}, {"name": "say", "args": "not JSON"}),
        ({"function": {"name": "stop", "arguments": ""}}, {"name": "stop", "args": {}}),
        (
            {"type": "web_search_call", "id": "w", "action": {"query": "q"}},
            {"name": "web_search", "args": {"query": "q"}},
        ),
        (
            {"type": "mcp_call", "name": "f", "arguments": "{}", "error": "no"},
            {"name": "f", "args": {}, "error": "no"},
        ),
    ],
)
def test_calls_without_results(item: dict[str, Any], call: dict[str, Any]) -> None:
    assert protocol_calls([item]) == [call]


def test_failed_calls_have_an_error() -> None:
    ends = [
        {"type": "tool_result", "tool_use_id": "1", "is_error": True, "content": "no such item"},
        {"role": "tool", "tool_call_id": "1", "status": "error", "content": "no such item"},
    ]
    for end in ends:
        calls = protocol_calls([{"type": "tool_use", "id": "1", "name": "price_of", "input": {}}, end])
        assert calls == [{"name": "price_of", "args": {}, "error": "no such item"}]


def test_results_belong_to_the_calls_with_their_ids() -> None:
    calls = [{"id": name, "function": {"name": "f", "arguments": "{}"}} for name in "ab"]
    ends = [{"role": "tool", "tool_call_id": name, "content": name} for name in "ba"]
    assert [call["result"] for call in protocol_calls([*calls, *ends])] == ["a", "b"]
    # Without ids, results are in the order of the calls.
    named = [{"function": {"name": "f", "arguments": "{}"}}] * 2
    ends = [{"role": "tool", "name": "f", "content": name} for name in "12"]
    assert [call["result"] for call in protocol_calls([*named, *ends])] == ["1", "2"]


@pytest.mark.parametrize(
    "item", [{"type": "function"}, {"title": "x"}, "price_of", None, {"function": {"arguments": "{}"}}]
)
def test_items_of_no_known_form_are_errors(item: Any) -> None:
    with pytest.raises(AgentError, match="must be an object with a text 'name'"):
        reply_from_json({"response": "", "tool_calls": [item]})


@pytest.mark.parametrize(
    "item", [{"name": "Ada"}, {"name": "Ada", "id": 1}, {"role": "user", "content": "hi"}, {}, "f", None]
)
def test_other_objects_are_no_calls(item: Any) -> None:
    assert not is_call(item)
