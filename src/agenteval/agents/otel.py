"""Spans of a trace, and the answer that they make together."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agenteval.agents.otel_messages import (
    VALUES,
    Attributes,
    LogRecord,
    Resource,
    Said,
    Span,
    SpanEvent,
    TracedCall,
    parsed,
    read_said,
    value_of,
    values_of,
)
from agenteval.core.records import dataclass
from agenteval.results.case import MOST_USED, ToolCall, Usage

# The attributes that name the case of a trace; the first present one counts.
CASE_ATTRIBUTES = ("agenteval.case", "test.case.name")
_AI_SDK = (
    *(("generateText", "Generate"), ("streamText", "Stream")),
    *(("generateObject", "Generate"), ("streamObject", "Stream")),
)
# The attributes of what other conventions name differently; the first present one counts. Sources: OpenTelemetry (the
# names until version 1.26 too), OpenInference, the AI SDK of Vercel and Langfuse.
_CONVERSATION = ("gen_ai.conversation.id", "session.id", "langfuse.session.id")
_KINDS = ("gen_ai.operation.name", "openinference.span.kind", "ai.operationId", "langfuse.observation.type")
_TOOL_NAMES = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name")
_CALL_IDS = ("gen_ai.tool.call.id", "tool_call.id", "ai.toolCall.id")
_ARGUMENTS = ("gen_ai.tool.call.arguments", "ai.toolCall.args", *VALUES["user"])
_RESULTS = ("gen_ai.tool.call.result", "ai.toolCall.result", *VALUES["assistant"])
_OPERATIONS = {
    **dict.fromkeys(("llm", "generation"), "chat"),
    **dict.fromkeys((f"ai.{made}.do{how}" for made, how in _AI_SDK), "chat"),
    **dict.fromkeys(("agent", *(f"ai.{made}" for made, _ in _AI_SDK)), "invoke_agent"),
    **dict.fromkeys(("tool", "ai.toolCall"), "execute_tool"),
    **dict.fromkeys(("chain", "span"), "chain"),
}
# Such a span, for instance of a search, is a part of an answer.
_SILENT = frozenset({"embedding", "retriever", "reranker", "guardrail", "evaluator", "prompt", "parser", "event"})
_MODEL_CALLS = frozenset({"chat", "text_completion", "generate_content"})
_INPUT_TOKENS = (
    *("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
    *("llm.token_count.prompt", "ai.usage.inputTokens", "ai.usage.promptTokens"),
)
_OUTPUT_TOKENS = (
    *("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
    *("llm.token_count.completion", "ai.usage.outputTokens", "ai.usage.completionTokens"),
)
# The last one is eight zero bytes in base64; some files use it for spans without a parent.
_NO_PARENT = frozenset({"", "0" * 16, "AAAAAAAAAAA="})


@dataclass(frozen=True)
class AgentSpan:
    """One span.

    Attributes:
        operation: ``invoke_agent``, ``chat``, ``execute_tool``, ...; empty if it is not an agent operation.
        error: why it failed, if it did.
    """

    span_id: str
    parent_id: str
    start_ns: int
    end_ns: int
    operation: str
    error: str | None
    case: str | None
    conversation: str | None
    said: Said
    tool: TracedCall | None
    input_tokens: int | None
    output_tokens: int | None

    @property
    def calls_model(self) -> bool:
        """Whether it is a model call."""
        return self.operation in _MODEL_CALLS

    @property
    def duration_ms(self) -> float | None:
        """The duration in milliseconds."""
        return (self.end_ns - self.start_ns) / 1e6 if self.end_ns >= self.start_ns else None


_NOTHING_SAID = Said()


def agent_span(
    span: Span, resource: Resource | None, more: Attributes | None = None, told: Iterable[SpanEvent] = ()
) -> AgentSpan:
    """Reduce a span to the needed data; ``more`` and ``told``: attributes and events as plain values."""
    attributes = {**values_of(span.attributes), **(more or {})}
    events = [*(SpanEvent(event.name or "", values_of(event.attributes)) for event in span.events or ()), *told]
    kind = (_first_text(attributes, _KINDS) or "").lower()
    is_silent = kind in _SILENT or _OPERATIONS.get(kind, kind) == "execute_tool"
    said = _NOTHING_SAID if is_silent else read_said(attributes, events)
    operation = "" if kind in _SILENT else _operation(attributes, said)
    parent = span.parent_id or ""
    return AgentSpan(
        span_id=span.span_id,
        parent_id="" if parent in _NO_PARENT else parent,
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        operation=operation,
        error=_span_error(span, attributes, events),
        case=_case(attributes) or _case(values_of(resource.attributes) if resource else {}),
        conversation=_first_text(attributes, _CONVERSATION),
        said=said if said != _NOTHING_SAID else _NOTHING_SAID,
        tool=_tool(span, attributes) if operation == "execute_tool" else None,
        input_tokens=_tokens(attributes, _INPUT_TOKENS),
        output_tokens=_tokens(attributes, _OUTPUT_TOKENS),
    )


def record_event(record: LogRecord) -> SpanEvent:
    """Return the event in a log record; its fields may be in the record's body."""
    attributes = values_of(record.attributes)
    body = value_of(record.body)
    name = record.event_name or _text(attributes.get("event.name")) or ""
    return SpanEvent(name, {**attributes, **(body if isinstance(body, dict) else {})})


def _operation(attributes: Attributes, said: Said) -> str:
    named = _first_text(attributes, _KINDS)
    if named is not None:
        return _OPERATIONS.get(named.lower(), _OPERATIONS.get(named, named))
    if "gen_ai.tool.name" in attributes:
        return "execute_tool"
    return "chat" if "gen_ai.request.model" in attributes or said.answered else ""


def _tool(span: Span, attributes: Attributes) -> TracedCall:
    name = _first_text(attributes, _TOOL_NAMES) or (span.name or "").removeprefix("execute_tool ")
    return TracedCall(
        name=name,
        id=_first_text(attributes, _CALL_IDS) or "",
        arguments=next((parsed(attributes[key]) for key in _ARGUMENTS if key in attributes), None),
        result=next((parsed(attributes[key]) for key in _RESULTS if key in attributes), None),
    )


def _span_error(span: Span, attributes: Attributes, events: Sequence[SpanEvent]) -> str | None:
    """Return the error of a failed span: its status message, with the exception type if that adds information.

    A span with an ``error.type`` has failed too, as OpenTelemetry's conventions define the attribute.
    """
    has_failed = span.status is not None and span.status.failed
    if not has_failed and not attributes.get("error.type"):
        return None
    raised = next((event.attributes for event in reversed(events) if event.name == "exception"), {})
    message = (span.status.message if span.status else None) or _text(raised.get("exception.message")) or ""
    kind = _text(attributes.get("error.type")) or _text(raised.get("exception.type")) or ""
    # A message often begins with the exception's name without its module.
    said = [part for part in (kind if kind.rpartition(".")[2] not in message else "", message) if part]
    return ": ".join(said) or "the trace failed without an error message"


def _case(attributes: Mapping[str, Any]) -> str | None:
    return _first_text(attributes, CASE_ATTRIBUTES)


def _first_text(attributes: Attributes, names: Sequence[str]) -> str | None:
    return next((found for name in names if (found := _text(attributes.get(name)))), None)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _tokens(attributes: Attributes, names: Sequence[str]) -> int | None:
    for name in names:
        count = attributes.get(name)
        if isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= MOST_USED:
            return count
    return None


def tool_calls_of(
    executed: Sequence[AgentSpan], asking: Sequence[AgentSpan], results: Mapping[str, Any]
) -> tuple[ToolCall, ...]:
    """Return every tool call once, in order of time.

    A call is joined with its execution by call id, or by the tool's name if either has no id.
    Arguments and results are those of the execution, else those in the messages.

    Args:
        asking: spans with messages that request tools, in order of start.
        results: the results sent to models by call id.
    """
    asked = _RequestedCalls(asking)
    timed: list[tuple[int, ToolCall]] = []
    for span in executed:
        if span.tool is None:
            continue
        call = asked.take(span.tool.id, span.tool.name)
        key = span.tool.id or (call.id if call else "")
        arguments, result = span.tool.arguments, span.tool.result
        made = ToolCall(
            name=span.tool.name,
            args=call.arguments if arguments is None and call else arguments,
            result=results.get(key) if result is None else result,
            error=span.error,
            duration_ms=span.duration_ms,
        )
        timed.append((span.start_ns, made))
    for time, call in asked.rest():
        timed.append((time, ToolCall(name=call.name, args=call.arguments, result=results.get(call.id))))
    return tuple(made for _, made in sorted(timed, key=lambda item: item[0]))


class _RequestedCalls:
    """The calls that models requested; each is taken at most once."""

    def __init__(self, spans: Sequence[AgentSpan]) -> None:
        # A tool can run as soon as a model has requested it.
        self._calls = [(span.end_ns, call) for span in spans for call in span.said.calls]
        self._taken: set[int] = set()
        self._by_id: dict[str, int] = {}
        self._by_name: defaultdict[str, deque[int]] = defaultdict(deque)
        for index, (_, call) in enumerate(self._calls):
            if call.id in self._by_id:
                # Two spans contain the same answer.
                self._taken.add(index)
                continue
            if call.id:
                self._by_id[call.id] = index
            self._by_name[call.name].append(index)

    def take(self, call_id: str, name: str) -> TracedCall | None:
        """Take the call with an id; if the id is unknown, the first matching call by name."""
        if call_id in self._by_id:
            return self._take(self._by_id[call_id])
        waiting = self._by_name[name]
        while waiting and waiting[0] in self._taken:
            waiting.popleft()
        may_be_meant = waiting and not (call_id and self._calls[waiting[0]][1].id)
        return self._take(waiting.popleft()) if may_be_meant else None

    def rest(self) -> list[tuple[int, TracedCall]]:
        """Return the calls that were not taken, with their times in nanoseconds."""
        return [item for index, item in enumerate(self._calls) if index not in self._taken]

    def _take(self, index: int) -> TracedCall | None:
        if index in self._taken:
            return None
        self._taken.add(index)
        return self._calls[index][1]


_AGENT = "invoke_agent"


@dataclass(frozen=True)
class OtelAnswer:
    """The question and answer of an agent in one trace.

    Attributes:
        start_ns: the start time, in nanoseconds since 1970.
        input: the last message of the user; ``None`` if no content was recorded.
        response: the last text of the assistant; empty if only tools were called, ``None`` if no content
            was recorded or there is no answer.
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


@dataclass(frozen=True)
class _Placed:
    """A span with its place in the tree.

    Attributes:
        repeats: whether an enclosing span records the same work: two libraries for a model call, or a tool's client.
    """

    span: AgentSpan
    depth: int
    repeats: bool


def answer_of(trace_id: str, line: int, spans: Sequence[AgentSpan]) -> OtelAnswer | None:
    """Return the answer in a trace; ``None`` if no span is from an agent or a model.

    It comes from the outermost span with a question or an answer, not from an agent's inner conversations.

    Args:
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
        error=_unrecovered_error(placed, has_answer=bool(texts)),
        case=next((span.case for span in outer_first if span.case), None),
        conversation=next((span.conversation for span in outer_first if span.conversation), None),
    )


def _placed(spans: Iterable[AgentSpan]) -> list[_Placed]:
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
    if span.tool is not None:
        return f"tool {span.tool.name}"
    return "model" if span.calls_model else ""


def _outermost(placed: Sequence[_Placed], has: Callable[[AgentSpan], bool]) -> list[AgentSpan]:
    """Return, among the spans with a value, those nearest to the root, in order."""
    found = [item for item in placed if has(item.span)]
    least = min((item.depth for item in found), default=0)
    return [item.span for item in found if item.depth == least]


def _told(placed: Sequence[_Placed], has: Callable[[AgentSpan], bool]) -> list[AgentSpan]:
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
    def counts(span: AgentSpan) -> bool:
        return span.input_tokens is not None or span.output_tokens is not None

    spans = _told(placed, lambda span: span.calls_model and counts(span)) or _outermost(placed, counts)
    if not spans:
        return None
    sent = [span.input_tokens for span in spans if span.input_tokens is not None]
    received = [span.output_tokens for span in spans if span.output_tokens is not None]
    return Usage(input_tokens=sum(sent) if sent else None, output_tokens=sum(received) if received else None)


def _latency_ms(placed: Sequence[_Placed]) -> float | None:
    roots = [item.span for item in placed if item.depth == 0]
    taken = max(span.end_ns for span in roots) - roots[0].start_ns
    return taken / 1e6 if taken >= 0 else None


def _unrecovered_error(placed: Sequence[_Placed], *, has_answer: bool) -> str | None:
    """Return why there is no answer. Inner failures from which the agent recovered are not errors."""
    roots = [item.span for item in placed if item.depth == 0]
    agents = _outermost(placed, lambda span: span.operation == _AGENT)
    deciding = [*(roots if len(roots) == 1 else ()), *agents[-1:]]
    if not has_answer:
        deciding += [item.span for item in reversed(placed) if item.span.operation]
    return next((span.error for span in deciding if span.error is not None), None)
