"""One span of an agent's trace, reduced to the data for an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agenteval.agents.replay.otel.messages import Attributes, Said, SpanEvent, parsed, read_said
from agenteval.agents.replay.otel.shape import LogRecord, Resource, Span, value_of, values_of
from agenteval.results.case import MOST_USED

# The attributes that name the case of a trace; the first present one counts.
CASE_ATTRIBUTES = ("agenteval.case", "test.case.name")
_CONVERSATION = "gen_ai.conversation.id"
_MODEL_CALLS = frozenset({"chat", "text_completion", "generate_content"})
# The current names, then the names until version 1.26.
_INPUT_TOKENS = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_OUTPUT_TOKENS = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
# The last one is eight zero bytes in base64; some files use it for spans without a parent.
_NO_PARENT = frozenset({"", "0" * 16, "AAAAAAAAAAA="})


@dataclass(frozen=True, slots=True)
class ToolRun:
    """An executed tool; ``arguments`` and ``result`` are set if content was recorded."""

    name: str
    call_id: str
    arguments: Any
    result: Any


@dataclass(frozen=True, slots=True)
class AgentSpan:
    """One span.

    Attributes:
        parent_id: empty if it has none.
        operation: ``invoke_agent``, ``chat``, ``execute_tool``, ...; empty if it is not an agent operation.
        error: why it failed, if it did.
        case: the case that the span names.
        conversation: the conversation id that the span names.
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
    tool: ToolRun | None
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


def agent_span(span: Span, resource: Resource | None) -> AgentSpan:
    """Reduce a span to the needed data.

    Args:
        span: the exported span.
        resource: its sender.
    """
    attributes = values_of(span.attributes)
    events = [SpanEvent(event.name or "", values_of(event.attributes)) for event in span.events or ()]
    said = read_said(attributes, events)
    operation = _operation(attributes, said)
    parent = span.parent_id or ""
    return AgentSpan(
        span_id=span.span_id,
        parent_id="" if parent in _NO_PARENT else parent,
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        operation=operation,
        error=_error(span, attributes, events),
        case=_case(attributes) or _case(values_of(resource.attributes) if resource else {}),
        conversation=_text(attributes.get(_CONVERSATION)),
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
    named = _text(attributes.get("gen_ai.operation.name"))
    if named is not None:
        return named
    if "gen_ai.tool.name" in attributes:
        return "execute_tool"
    return "chat" if "gen_ai.request.model" in attributes or said.answered else ""


def _tool(span: Span, attributes: Attributes) -> ToolRun:
    name = _text(attributes.get("gen_ai.tool.name")) or (span.name or "").removeprefix("execute_tool ")
    return ToolRun(
        name=name,
        call_id=_text(attributes.get("gen_ai.tool.call.id")) or "",
        arguments=parsed(attributes.get("gen_ai.tool.call.arguments")),
        result=parsed(attributes.get("gen_ai.tool.call.result")),
    )


def _error(span: Span, attributes: Attributes, events: Sequence[SpanEvent]) -> str | None:
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
    return next((found for name in CASE_ATTRIBUTES if (found := _text(attributes.get(name)))), None)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _tokens(attributes: Attributes, names: Sequence[str]) -> int | None:
    for name in names:
        count = attributes.get(name)
        if isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= MOST_USED:
            return count
    return None
