"""Joins the spans of one trace into one answer of an agent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agenteval.agents.replay.otel.span import AgentSpan
from agenteval.agents.replay.otel.tools import tool_calls_of
from agenteval.results.case import ToolCall, Usage

_AGENT = "invoke_agent"


@dataclass(frozen=True, slots=True)
class OtelAnswer:
    """The question and answer of an agent in one trace.

    Attributes:
        line: the first line of the trace in its file.
        start_ns: the start time, in nanoseconds since 1970.
        input: the last message of the user; ``None`` if no content was recorded.
        response: the last text of the assistant; empty if only tools were called, ``None`` if no content
            was recorded or there is no answer.
        error: why there is no answer, if the trace failed.
        case: the case that the trace names.
        conversation: the conversation id that the trace names.
    """

    trace_id: str
    line: int
    start_ns: int
    input: str | None
    response: str | None
    tool_calls: tuple[ToolCall, ...]
    usage: Usage | None
    latency_ms: float | None
    error: str | None
    case: str | None
    conversation: str | None


@dataclass(frozen=True, slots=True)
class _Placed:
    """A span with its place in the tree.

    Attributes:
        depth: the number of spans that enclose it.
        repeats: whether an enclosing span records the same work: two libraries for a model call, or a tool's client.
    """

    span: AgentSpan
    depth: int
    repeats: bool


def answer_of(trace_id: str, line: int, spans: Sequence[AgentSpan]) -> OtelAnswer | None:
    """Return the answer in a trace; ``None`` if no span is from an agent or a model.

    It comes from the outermost span with a question or an answer, not from an agent's inner conversations.

    Args:
        trace_id: the id shared by all spans.
        line: the line of the first span.
        spans: in any order, with unique ids.
    """
    placed = _placed(spans)
    if not any(item.span.operation for item in placed):
        return None
    asking = _outermost(placed, lambda span: span.said.user is not None)
    answering = _outermost(placed, lambda span: span.said.answered)
    texts = [span.said.text for span in sorted(answering, key=lambda span: span.end_ns) if span.said.text is not None]
    outer_first = [item.span for item in sorted(placed, key=lambda item: item.depth)]
    return OtelAnswer(
        trace_id=trace_id,
        line=line,
        start_ns=placed[0].span.start_ns,
        input=asking[0].said.user if asking else None,
        response=texts[-1] if texts else "" if answering else None,
        tool_calls=_tool_calls(placed),
        usage=_usage(placed),
        latency_ms=_latency_ms(placed),
        error=_error(placed, has_answer=bool(texts)),
        case=next((span.case for span in outer_first if span.case), None),
        conversation=next((span.conversation for span in outer_first if span.conversation), None),
    )


def _placed(spans: Iterable[AgentSpan]) -> list[_Placed]:
    """Return the spans of a trace in order of start, without spans in a cycle of parents."""
    by_id = {span.span_id: span for span in spans}
    children: defaultdict[str, list[AgentSpan]] = defaultdict(list)
    for span in by_id.values():
        children[span.parent_id if span.parent_id in by_id else ""].append(span)
    placed: list[_Placed] = []
    level = [(span, "") for span in children[""]]
    depth = 0
    while level:
        placed += [_Placed(span, depth, repeats=bool(around) and around == _work(span)) for span, around in level]
        # Other spans, such as of HTTP or a database, may lie in between.
        level = [
            (child, _work(span) if span.operation else around)
            for span, around in level
            for child in children.get(span.span_id, ())
        ]
        depth += 1
    return sorted(placed, key=lambda item: (item.span.start_ns, item.depth))


def _work(span: AgentSpan) -> str:
    """Return the counted work of a span; equal work in a nested span is a duplicate."""
    if span.tool is not None:
        return f"tool {span.tool.name}"
    return "model" if span.calls_model else ""


def _outermost(placed: Sequence[_Placed], has: Callable[[AgentSpan], bool]) -> list[AgentSpan]:
    """Return, among the spans with a value, those nearest to the root, in order."""
    found = [item for item in placed if has(item.span)]
    least = min((item.depth for item in found), default=0)
    return [item.span for item in found if item.depth == least]


def _told(placed: Sequence[_Placed], has: Callable[[AgentSpan], bool]) -> list[AgentSpan]:
    """Return the spans with a value, without duplicates of enclosing spans."""
    return [item.span for item in placed if not item.repeats and has(item.span)]


def _tool_calls(placed: Sequence[_Placed]) -> tuple[ToolCall, ...]:
    """Return the executed tool calls and those that models requested; without model calls, the agent's."""
    executed = _told(placed, lambda span: span.tool is not None)
    asking = _told(placed, lambda span: span.calls_model and bool(span.said.calls))
    results: dict[str, Any] = {}
    for item in placed:
        for key, result in item.span.said.results.items():
            results.setdefault(key, result)
    return tool_calls_of(executed, asking or _outermost(placed, lambda span: bool(span.said.calls)), results)


def _usage(placed: Sequence[_Placed]) -> Usage | None:
    """Return the tokens of all model calls; if none records any, those of the agent's spans."""

    def counts(span: AgentSpan) -> bool:
        return span.input_tokens is not None or span.output_tokens is not None

    spans = _told(placed, lambda span: span.calls_model and counts(span)) or _outermost(placed, counts)
    if not spans:
        return None
    sent = [span.input_tokens for span in spans if span.input_tokens is not None]
    received = [span.output_tokens for span in spans if span.output_tokens is not None]
    return Usage(input_tokens=sum(sent) if sent else None, output_tokens=sum(received) if received else None)


def _latency_ms(placed: Sequence[_Placed]) -> float | None:
    """Return the root's duration; without a root span, the time from the first start to the last end."""
    roots = [item.span for item in placed if item.depth == 0]
    taken = max(span.end_ns for span in roots) - roots[0].start_ns
    return taken / 1e6 if taken >= 0 else None


def _error(placed: Sequence[_Placed], *, has_answer: bool) -> str | None:
    """Return why there is no answer. Inner failures from which the agent recovered are not errors."""
    roots = [item.span for item in placed if item.depth == 0]
    agents = _outermost(placed, lambda span: span.operation == _AGENT)
    deciding = [*(roots if len(roots) == 1 else ()), *agents[-1:]]
    if not has_answer:
        deciding += [item.span for item in reversed(placed) if item.span.operation]
    return next((span.error for span in deciding if span.error is not None), None)
