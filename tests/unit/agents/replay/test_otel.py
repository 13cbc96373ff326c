"""One answer from the spans of one trace, in all versions of the message format."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.agents.otel import OtelAnswer, agent_span, answer_of
from agenteval.agents.otel_messages import Span, SpanEvent, Status, TracedCall, read_said, value_of
from agenteval.results.case import ToolCall, Usage

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    [
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.operation.name",
        "gen_ai.prompt",
        "gen_ai.completion",
        "gen_ai.prompt.0.role",
        "gen_ai.completion.0.tool_calls.0.name",
        "gen_ai.tool.name",
        "gen_ai.usage.input_tokens",
        "message",
        "content",
        "role",
        "tool_calls",
    ]
)
MESSAGES = st.lists(
    st.dictionaries(st.sampled_from(["role", "content", "parts", "tool_calls", "id", "type"]), JSON, max_size=4),
    max_size=3,
)


def any_value(value: Any) -> dict[str, Any]:
    """A plain value in OTLP's format."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": key, "value": any_value(item)} for key, item in value.items()]}}
    return {}


def span(
    span_id: str,
    start_ms: float = 0,
    end_ms: float = 100,
    parent: str = "",
    *,
    attributes: Mapping[str, Any] | None = None,
    error: str | None = None,
    **fields: Any,
) -> dict[str, Any]:
    return {
        "traceId": "t",
        "spanId": span_id,
        "parentSpanId": parent,
        "startTimeUnixNano": str(int(start_ms * 1e6)),
        "endTimeUnixNano": str(int(end_ms * 1e6)),
        "attributes": [{"key": key, "value": any_value(value)} for key, value in (attributes or {}).items()],
        "status": {} if error is None else {"code": 2, "message": error},
        **fields,
    }


def text(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": content}]}


def said(question: str | None = None, answer: str | None = None) -> dict[str, Any]:
    given = {"gen_ai.input.messages": json.dumps([text("user", question)])} if question is not None else {}
    came = {"gen_ai.output.messages": json.dumps([text("assistant", answer)])} if answer is not None else {}
    return given | came


def chat(
    span_id: str, start_ms: float, end_ms: float, parent: str = "", tokens: int | None = None, /, **attributes: Any
) -> dict[str, Any]:
    usage = {} if tokens is None else {"gen_ai.usage.input_tokens": tokens, "gen_ai.usage.output_tokens": 1}
    named = {"gen_ai.operation.name": "chat", **usage, **attributes}
    return span(span_id, start_ms, end_ms, parent, attributes=named)


def agent(span_id: str, start_ms: float, end_ms: float, parent: str = "", /, **attributes: Any) -> dict[str, Any]:
    return span(span_id, start_ms, end_ms, parent, attributes={"gen_ai.operation.name": "invoke_agent", **attributes})


def tool(span_id: str, start_ms: float, end_ms: float, parent: str, /, **attributes: Any) -> dict[str, Any]:
    named = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search", **attributes}
    return span(span_id, start_ms, end_ms, parent, attributes=named)


def answer(*spans: Mapping[str, Any]) -> OtelAnswer:
    found = answer_of("t", 1, [agent_span(Span.model_validate(item), None) for item in spans])
    assert found is not None
    return found


# Messages


@pytest.mark.parametrize(
    ("attributes", "events"),
    [
        (said("Where?", "There."), []),
        (
            {
                "gen_ai.input.messages": [text("user", "Where?")],
                "gen_ai.output.messages": [text("assistant", "There.")],
            },
            [],
        ),
        ({}, [("gen_ai.client.inference.operation.details", said("Where?", "There."))]),
        (
            {},
            [
                ("gen_ai.system.message", {"content": "Be short."}),
                ("gen_ai.user.message", {"content": "Where?"}),
                ("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": {"content": "There."}}),
            ],
        ),
        (
            {},
            [
                ("gen_ai.user.message", {"gen_ai.event.content": '{"role": "user", "content": "Where?"}'}),
                ("gen_ai.choice", {"gen_ai.event.content": '{"message": {"content": "There."}}'}),
            ],
        ),
        (
            {},
            [
                ("gen_ai.content.prompt", {"gen_ai.prompt": '[{"role": "user", "content": "Where?"}]'}),
                ("gen_ai.content.completion", {"gen_ai.completion": '[{"role": "assistant", "content": "There."}]'}),
            ],
        ),
        (
            {
                "gen_ai.prompt.0.role": "system",
                "gen_ai.prompt.0.content": "Be short.",
                "gen_ai.prompt.1.role": "user",
                "gen_ai.prompt.1.content": '[{"type": "text", "text": "Where?"}]',
                "gen_ai.completion.0.role": "assistant",
                "gen_ai.completion.0.content": "There.",
            },
            [],
        ),
        ({"gen_ai.prompt": "Where?", "gen_ai.completion": "There."}, []),
    ],
    ids=["json", "structured", "event", "events", "event-content", "content-events", "indexed", "plain"],
)
def test_all_forms_say_the_same(attributes: dict[str, Any], events: list[tuple[str, dict[str, Any]]]) -> None:
    found = read_said(attributes, [SpanEvent(name, content) for name, content in events])
    assert (found.user, found.text, found.answered) == ("Where?", "There.", True)


def test_an_answer_that_is_json_stays_as_it_is() -> None:
    content = '[{"city": "Paris"}]'
    for message in ({"role": "assistant", "content": content}, text("assistant", content)):
        assert read_said({"gen_ai.output.messages": json.dumps([message])}, []).text == content


@pytest.mark.parametrize(
    "message",
    [
        {"parts": [{"type": "tool_call", "id": "1", "name": "search", "arguments": {"q": 1}}]},
        {"tool_calls": [{"id": "1", "type": "function", "function": {"name": "search", "arguments": '{"q": 1}'}}]},
        {"tool_calls": '[{"id": 1, "function": {"name": "search", "arguments": "{\\"q\\": 1}"}}]'},
    ],
)
def test_calls_in_messages(message: dict[str, Any]) -> None:
    found = read_said({"gen_ai.output.messages": [{"role": "assistant", **message}]}, [])
    assert found.calls == (TracedCall("1", "search", {"q": 1}),)
    assert found.answered
    assert found.text is None


# Traces


def test_question_and_answer_are_those_of_the_outermost_span() -> None:
    found = answer(
        agent("a", 0, 100, **said("Where is my bike?", "At the lake.")),
        chat("b", 10, 20, "a", **said("Translate: Where is my bike?", "Wo ist mein Rad?")),
        agent("c", 30, 90, "a", **said("Find the bike.", "Lake.")),
    )
    assert (found.input, found.response, found.latency_ms) == ("Where is my bike?", "At the lake.", 100)


def test_without_an_agent_the_first_call_asks_and_the_last_answers() -> None:
    found = answer(
        span("http"),
        chat("b", 50, 90, "http", **said("Where?", "There.")),
        chat("a", 10, 40, "http", **said("Where?", "Let me see.")),
        span("queue", 20, 60),
    )
    assert (found.input, found.response, found.latency_ms) == ("Where?", "There.", 100)


def test_a_trace_without_agent_and_model_is_no_answer() -> None:
    assert answer_of("t", 1, [agent_span(Span.model_validate(span("http")), None)]) is None


@given(st.lists(st.integers(min_value=0, max_value=10**6), min_size=1, max_size=6), st.randoms())
def test_tokens_are_those_of_model_calls_counted_once(tokens: Sequence[int], order: random.Random) -> None:
    spans = [agent("a", 0, 1000, **{"gen_ai.usage.input_tokens": sum(tokens), "gen_ai.usage.output_tokens": 9})]
    for number, count in enumerate(tokens):
        spans += [
            chat(f"c{number}", number, number + 1, "a", count),
            span(f"h{number}", number, number + 1, f"c{number}"),
            # Another library records the same call.
            chat(f"d{number}", number, number + 1, f"h{number}", count),
        ]
    order.shuffle(spans)
    assert answer(*spans).usage == Usage(input_tokens=sum(tokens), output_tokens=len(tokens))


def test_tools_are_listed_in_the_order_of_time() -> None:
    calls = [
        {"type": "tool_call", "id": str(number), "name": "search", "arguments": {"q": number}} for number in (1, 2)
    ]
    found = answer(
        agent("a", 0, 100, **said("Where?", "There.")),
        tool("d", 30, 40, "a", **{"gen_ai.tool.call.id": "2", "gen_ai.tool.call.result": "[2]"}),
        tool("c", 20, 45, "a", **{"gen_ai.tool.call.id": "1", "gen_ai.tool.call.arguments": '{"q": "own"}'}),
        chat("b", 1, 10, "a", **{"gen_ai.output.messages": [{"role": "assistant", "parts": calls}]}),
    )
    assert found.tool_calls == (
        ToolCall(name="search", args={"q": "own"}, duration_ms=25),
        ToolCall(name="search", args={"q": 2}, result=[2], duration_ms=10),
    )


def test_a_tool_and_its_client_are_one_call() -> None:
    found = answer(
        agent("a", 0, 100),
        tool("b", 10, 40, "a"),
        span("c", 11, 39, "b"),
        tool("d", 12, 38, "c"),
        tool("e", 50, 60, "a"),
    )
    assert [call.duration_ms for call in found.tool_calls] == [30, 10]


@pytest.mark.parametrize(
    ("message", "attributes", "told"),
    [
        ("timeout", {"error.type": "httpx.ReadTimeout"}, "httpx.ReadTimeout: timeout"),
        ("ReadTimeout: late", {"error.type": "httpx.ReadTimeout"}, "ReadTimeout: late"),
        ("", {"error.type": "500"}, "500"),
        ("", {}, "the trace failed without an error message"),
    ],
)
def test_messages_of_errors(message: str, attributes: dict[str, Any], told: str) -> None:
    operation = {"gen_ai.operation.name": "invoke_agent"}
    assert answer(span("a", attributes=operation | attributes, error=message)).error == told


@given(JSON)
def test_values_come_through(value: Any) -> None:
    assert value_of(any_value(value)) == value


@given(st.dictionaries(KEYS, JSON | MESSAGES | MESSAGES.map(json.dumps), max_size=5), st.sampled_from(["", "a", "b"]))
def test_no_attributes_crash_the_reader(attributes: dict[str, Any], parent: str) -> None:
    event = {
        "name": "gen_ai.choice",
        "attributes": [{"key": key, "value": any_value(value)} for key, value in attributes.items()],
    }
    spans = [span("a", parent=parent, attributes=attributes), span("b", parent="a", events=[event])]
    found = answer_of("t", 1, [agent_span(Span.model_validate(item), None) for item in spans])
    assert found is None or isinstance(found.response, str | None)


@pytest.mark.parametrize(
    ("code", "failed"),
    [
        *((code, False) for code in (None, 0, 1, "0", "1", "STATUS_CODE_UNSET", "STATUS_CODE_OK", "OK", "Unset")),
        *((code, True) for code in (2, "2", "STATUS_CODE_ERROR", "ERROR", "error")),
    ],
)
def test_the_status_is_read_as_writers_name_it(code: Any, failed: bool) -> None:
    assert Status.model_validate({"code": code}).failed is failed
    assert not Status.model_validate({}).failed


@pytest.mark.parametrize("code", [3, -1, True, "failed", "", [2], {}])
def test_a_status_that_does_not_exist_is_a_mistake(code: Any) -> None:
    with pytest.raises(ValueError, match="must be STATUS_CODE_UNSET, STATUS_CODE_OK or STATUS_CODE_ERROR"):
        Status.model_validate({"code": code})
