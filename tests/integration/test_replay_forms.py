"""Traces of other tools: one answer for each trace, with its tool calls and tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agenteval.agents.recorded_cases import read_traces
from agenteval.agents.recording import BadLine
from agenteval.agents.replay_agent import read_recording
from agenteval.agents.traces import read_answers
from agenteval.core.errors import ConfigError

Q, A = "Where is my refund?", "On its way."
ARGS = '{"order": 7}'
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": ARGS}}
VALUES = {"input.value": ARGS, "output.value": "sent"}
LLM, IN, OUT = "llm.input_messages.0.message", "llm.input_messages.1.message", "llm.output_messages.0.message"
CALLED = f"{OUT}.tool_calls.0.tool_call"
AI_CALL = {"toolCallType": "function", "toolCallId": "c1", "toolName": "look", "args": ARGS}
USER, SENT = "gen_ai.user.message", {"toolResult": {"toolUseId": "c1", "content": [{"text": "sent"}]}}
TIMES = {"startTime": "2026-02-15T10:30:00.100Z", "endTime": "2026-02-15T10:30:02.350Z"}
RUN = {"trace_id": "r1", "start_time": "2026-02-15T10:30:00.100000", "end_time": "2026-02-15T10:30:02.350000"}
Event = tuple[str, Mapping[str, Any]]


def span(parent: int, attributes: Mapping[str, Any], *events: Event) -> dict[str, Any]:
    at = {"attributes": keyed(attributes), "events": [{"name": n, "attributes": keyed(a)} for n, a in events]}
    return {"parentSpanId": f"{parent:016x}" if parent else "", "name": "look", **at}


def keyed(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    def value(each: Any) -> dict[str, str]:
        return {"intValue": str(each)} if isinstance(each, int) else {"stringValue": texted(each)}

    return [{"key": key, "value": value(each)} for key, each in values.items()]


def texted(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def otlp(*spans: dict[str, Any]) -> str:
    end = {"traceId": "1" * 32, "endTimeUnixNano": str(2 * 10**9)}
    placed = [
        {"spanId": f"{at:016x}", "startTimeUnixNano": str(10**9 + at), **end, **each}
        for at, each in enumerate(spans, start=1)
    ]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": placed}]}]})


def sdk_span(
    key: int, parent: int | None, kind: str | None, attributes: Mapping[str, Any], *events: Event
) -> dict[str, Any]:
    at = {"context": {"trace_id": "t1", "span_id": str(key)}, "parent_id": parent and str(parent), "span_kind": kind}
    times = {"start_time": TIMES["startTime"], "end_time": TIMES["endTime"]}
    told = [{"name": name, "attributes": values} for name, values in events]
    return {**at, **times, "name": "look", "attributes": attributes, "events": told}


def table(span: Mapping[str, Any]) -> dict[str, Any]:
    inner = {f"{name}.{key}": value for name in ("context", "attributes") for key, value in span[name].items()}
    return {"parent_id": span["parent_id"], "span_kind": span["span_kind"], **inner, "start_time": 1771151400100}


def rows(*each: Mapping[str, Any]) -> str:
    return "\n".join(map(json.dumps, each))


CHAT = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": Q},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "sent"},
    {"role": "assistant", "content": A},
]
OBSERVATIONS: list[dict[str, Any]] = [
    {"id": "o1", "traceId": "t1", "type": "AGENT", "name": "bot", "parentObservationId": None, "level": "DEFAULT",
     "input": Q, "output": A, **TIMES},
    {"id": "o2", "traceId": "t1", "type": "GENERATION", "name": "gpt", "parentObservationId": "o1", **TIMES,
     "input": {"messages": [{"role": "user", "content": Q}]}, "output": {"role": "assistant", "content": A},
     "usageDetails": {"input": 31, "output": 7, "total": 38}},
    {"id": "o3", "traceId": "t1", "type": "TOOL", "name": "look", "parentObservationId": "o1", **TIMES,
     "input": {"order": 7}, "output": "sent"},
    {"id": "o4", "traceId": "t1", "type": "RETRIEVER", "name": "search", "parentObservationId": "o1", **TIMES,
     "input": "refunds", "output": "[]"},
]  # fmt: skip
PHOENIX = [
    sdk_span(1, None, "AGENT", {"input.value": Q, "output.value": A}),
    sdk_span(2, 1, "LLM", {"llm.token_count.prompt": 31, "llm.token_count.completion": 7}),
    sdk_span(3, 1, "TOOL", {"tool.name": "look", **VALUES}),
]
FORMS = {
    "OpenInference": otlp(
        span(0, {"openinference.span.kind": "AGENT", "input.value": Q, "output.value": A}),
        span(1, {"openinference.span.kind": "LLM", f"{LLM}.role": "system", f"{LLM}.content": "Be kind.",
                 f"{IN}.role": "user", f"{IN}.content": Q, f"{OUT}.role": "assistant", f"{CALLED}.id": "c1",
                 f"{CALLED}.function.name": "look", f"{CALLED}.function.arguments": ARGS,
                 "llm.token_count.prompt": 31, "llm.token_count.completion": 7}),
        span(1, {"openinference.span.kind": "TOOL", "tool.name": "look", **VALUES}),
        span(1, {"openinference.span.kind": "RETRIEVER", "input.value": "refunds", "output.value": "[]"}),
    ),
    "OpenInference of LangGraph": otlp(
        span(0, {"openinference.span.kind": "CHAIN", "input.mime_type": "application/json",
                 "input.value": {"messages": [{"type": "human", "content": Q}]},
                 "output.value": {"messages": [{"type": "human", "content": Q}, {"type": "ai", "content": A}]}}),
        span(1, {"openinference.span.kind": "TOOL", "tool.name": "look", **VALUES}),
        span(1, {"openinference.span.kind": "LLM", "llm.token_count.prompt": 31, "llm.token_count.completion": 7,
                 f"{OUT}.contents.0.message_content.type": "text", f"{OUT}.contents.0.message_content.text": A}),
    ),
    "AI SDK": otlp(
        span(0, {"ai.operationId": "ai.generateText", "ai.prompt": {"system": "Be kind.", "prompt": Q},
                 "ai.response.text": A, "ai.usage.promptTokens": 31, "ai.usage.completionTokens": 7}),
        span(1, {"ai.operationId": "ai.generateText.doGenerate", "gen_ai.request.model": "gpt-4o",
                 "ai.prompt.messages": [{"role": "user", "content": [{"type": "text", "text": Q}]}],
                 "ai.response.toolCalls": [AI_CALL], "ai.usage.promptTokens": 31, "ai.usage.completionTokens": 7}),
        span(1, {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "look", "ai.toolCall.id": "c1",
                 "ai.toolCall.args": ARGS, "ai.toolCall.result": '"sent"'}),
    ),
    "Strands": otlp(
        span(0, {"gen_ai.operation.name": "invoke_agent"}, (USER, {"content": [{"text": Q}]}),
             ("gen_ai.choice", {"message": A, "finish_reason": "end_turn"})),
        span(1, {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 31, "gen_ai.usage.output_tokens": 7},
             (USER, {"content": [{"text": Q}]}), ("gen_ai.choice", {"finish_reason": "tool_use", "message": [
                 {"toolUse": {"toolUseId": "c1", "name": "look", "input": {"order": 7}}}]})),
        span(1, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "gen_ai.tool.call.id": "c1"}),
        span(1, {"gen_ai.operation.name": "chat"}, (USER, {"content": [{"text": Q}]}), (USER, {"content": [SENT]}),
             ("gen_ai.choice", {"finish_reason": "end_turn", "message": [{"text": A}]})),
    ),
    "Langfuse by OpenTelemetry": otlp(
        span(0, {"langfuse.observation.type": "agent", "langfuse.observation.input": Q,
                 "langfuse.observation.output": A}),
        span(1, {"langfuse.observation.type": "tool", "langfuse.observation.input": ARGS,
                 "langfuse.observation.output": "sent"}),
    ),
    "observations of Langfuse": rows(*OBSERVATIONS),
    "a trace of Langfuse": json.dumps({"id": "t1", "name": "bot", "observations": OBSERVATIONS}, indent=1),
    "runs of LangSmith": json.dumps([
        {"id": "r1", "run_type": "chain", "name": "bot", "parent_run_id": None, "session_id": "project", **RUN,
         "inputs": {"input": Q}, "outputs": {"output": A}, "error": None},
        {"id": "r2", "run_type": "tool", "name": "look", "parent_run_id": "r1", **RUN,
         "inputs": {"order": 7}, "outputs": {"output": "sent"}},
    ]),
    "spans of Phoenix": json.dumps({"data": PHOENIX}),
    "a table of Phoenix": rows(*map(table, PHOENIX)),
    "spans of OpenTelemetry's SDK": "\n".join(json.dumps(each, indent=4) for each in (
        sdk_span(1, None, None, {"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 31,
                                 "gen_ai.usage.output_tokens": 7},
                 ("gen_ai.user.message", {"content": Q}), ("gen_ai.choice", {"message": A})),
        sdk_span(2, 1, None, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look",
                              "gen_ai.tool.call.arguments": ARGS, "gen_ai.tool.call.result": "sent"}),
    )),
    "chats of OpenAI": rows({"messages": CHAT}),
}  # fmt: skip
# The same without a call of a tool.
TOLD = [{"role": "user", "content": Q}]
PLAIN: dict[str, dict[str, Any]] = {
    "a trace of Langfuse": {"id": "t1", "timestamp": TIMES["startTime"], "latency": 2.25, "sessionId": None,
                            "input": {"question": Q}, "output": A, "observations": ["o1"]},
    "a call of OpenAI in LangSmith": {"id": "r1", "run_type": "llm", **RUN, "inputs": {"messages": TOLD},
                                      "outputs": {"choices": [{"message": {"role": "assistant", "content": A}}]}},
    "a call of LangChain in LangSmith": {
        "id": "r1", "run_type": "llm", **RUN,
        "inputs": {"messages": [[{"lc": 1, "kwargs": {"content": Q, "type": "human"}}]]},
        "outputs": {"generations": [[{"text": A, "message": {"lc": 1, "kwargs": {"content": A, "type": "ai"}}}]]}},
}  # fmt: skip


@pytest.mark.parametrize("form", PLAIN)
def test_a_trace_can_be_one_row(tmp_path: Path, form: str) -> None:
    file = tmp_path / "traces.json"
    file.write_text(rows(PLAIN[form]))
    assert [(trace.input, trace.output) for trace in read_traces(file) if not isinstance(trace, BadLine)] == [(Q, A)]


@pytest.mark.parametrize("form", FORMS)
def test_a_trace_of_another_tool_is_one_answer(tmp_path: Path, form: str) -> None:
    file = tmp_path / "traces.json"
    file.write_text(FORMS[form])
    (answer,) = read_answers(file)
    assert not isinstance(answer, BadLine)
    assert (answer.input, answer.response, answer.error) == (Q, A, None)
    (call,) = answer.tool_calls
    result = {"output": "sent"} if form == "runs of LangSmith" else "sent"
    assert (call.name, call.args, call.result) == ("look", {"order": 7}, result)
    counted = None if form in {"Langfuse by OpenTelemetry", "runs of LangSmith", "chats of OpenAI"} else (31, 7)
    assert (answer.usage and (answer.usage.input_tokens, answer.usage.output_tokens)) == counted
    (notice,) = read_recording(file).notices([])
    assert notice.startswith("traces.json: 1 of 1 traces belongs to no case of this run")
    assert [(trace.input, trace.output) for trace in read_traces(file) if not isinstance(trace, BadLine)] == [(Q, A)]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (rows({"messages": CHAT[:2]}), ":1: `messages` needs a message of the user and an answer of the assistant"),
        (rows(OBSERVATIONS[0], {"id": "o2"}), ":2: needs `id`, the trace's id and a start"),
        (rows(OBSERVATIONS[0]) + "\n{", ":2: not valid JSON"),
        (rows({"object": "chat.completion", "choices": []}), ":1: not a recorded reply: needs a text `case`"),
    ],
)
def test_rows_that_are_no_spans_are_named(tmp_path: Path, content: str, problem: str) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(content)
    with pytest.raises(ConfigError) as raised:
        read_recording(file)
    assert problem in str(raised.value)
