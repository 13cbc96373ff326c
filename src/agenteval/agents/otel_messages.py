"""OTLP's JSON format, and the messages in attributes and events of a span."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from agenteval.core.records import dataclass, field

# The relevant part of OTLP's JSON format (opentelemetry-proto: trace, logs and common, version 1).
#
# Ids are kept unchanged: hexadecimal as in the specification, or base64 as in protobuf's JSON mapping.


_NUMBERS = {"intValue": int, "doubleValue": float}
# Numbers and names of the status; some writers leave out the prefix of the names.
_STATUS = {"0": False, "1": False, "2": True, "UNSET": False, "OK": False, "ERROR": True}
_STATUS_PREFIX = "STATUS_CODE_"


class _Shape(BaseModel):
    # Missing fields are empty; some writers write null instead.
    model_config = ConfigDict(extra="ignore", frozen=True)


class KeyValue(_Shape):
    """One attribute; see ``value_of``."""

    key: str
    value: dict[str, Any] | None = None


class Status(_Shape):
    """The status of a span."""

    failed: bool = Field(default=False, alias="code")
    message: str | None = None

    @field_validator("failed", mode="before")
    @classmethod
    def _read(cls, code: Any) -> bool:
        name = "UNSET" if code is None else str(code).upper().removeprefix(_STATUS_PREFIX)
        if name not in _STATUS:
            raise ValueError(
                f"must be {_STATUS_PREFIX}UNSET, {_STATUS_PREFIX}OK or {_STATUS_PREFIX}ERROR, or 0, 1 or 2"
            )
        return _STATUS[name]


class Event(_Shape):
    """An event of a span."""

    name: str | None = None
    attributes: list[KeyValue] | None = None


class Span(_Shape):
    """One operation. Times are nanoseconds since 1970."""

    trace_id: str = Field(alias="traceId", min_length=1)
    span_id: str = Field(alias="spanId", min_length=1)
    parent_id: str | None = Field(None, alias="parentSpanId")
    name: str | None = None
    start_ns: int = Field(alias="startTimeUnixNano", ge=0)
    end_ns: int = Field(0, alias="endTimeUnixNano", ge=0)
    attributes: list[KeyValue] | None = None
    events: list[Event] | None = None
    status: Status | None = None


class LogRecord(_Shape):
    """An event that was exported separately, with the id of its span."""

    trace_id: str | None = Field(None, alias="traceId")
    span_id: str | None = Field(None, alias="spanId")
    event_name: str | None = Field(None, alias="eventName")
    attributes: list[KeyValue] | None = None
    body: dict[str, Any] | None = None


class Resource(_Shape):
    """The sender of spans or events."""

    attributes: list[KeyValue] | None = None


class ScopeSpans(_Shape):
    """Spans of one library."""

    spans: list[Span] | None = None


class ResourceSpans(_Shape):
    """Spans of one process."""

    resource: Resource | None = None
    scopes: list[ScopeSpans] | None = Field(None, alias="scopeSpans")


class ScopeLogs(_Shape):
    """Events of one library."""

    records: list[LogRecord] | None = Field(None, alias="logRecords")


class ResourceLogs(_Shape):
    """Events of one process."""

    scopes: list[ScopeLogs] | None = Field(None, alias="scopeLogs")


class Export(_Shape):
    """One export request: spans or events; metrics contain no answers."""

    resource_spans: list[ResourceSpans] | None = Field(None, alias="resourceSpans")
    resource_logs: list[ResourceLogs] | None = Field(None, alias="resourceLogs")
    resource_metrics: Any = Field(None, alias="resourceMetrics", exclude=True, repr=False)

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("`resourceSpans` is missing")
        return self

    def spans(self) -> Iterator[tuple[Resource | None, Span]]:
        """Yield every span with its sender."""
        for sent in self.resource_spans or ():
            for scope in sent.scopes or ():
                for span in scope.spans or ():
                    yield sent.resource, span

    def records(self) -> Iterator[LogRecord]:
        """Yield every event that was exported separately."""
        for sent in self.resource_logs or ():
            for scope in sent.scopes or ():
                yield from scope.records or ()


def values_of(attributes: list[KeyValue] | None) -> dict[str, Any]:
    """Return attributes as plain values by name."""
    return {attribute.key: value_of(attribute.value) for attribute in attributes or ()}


def value_of(value: Any) -> Any:
    """Return the plain value of an ``AnyValue``; ``None`` if it has none or its kind is unknown."""
    if not isinstance(value, dict) or not value:
        return None
    kind, content = next(iter(value.items()))
    if kind in _NUMBERS:
        try:
            return _NUMBERS[kind](content)
        except (TypeError, ValueError, OverflowError):
            return None
    if kind == "arrayValue":
        return [value_of(item) for item in _values(content)]
    if kind == "kvlistValue":
        pairs = (item for item in _values(content) if isinstance(item, dict))
        return {str(item.get("key")): value_of(item.get("value")) for item in pairs}
    return content if kind in {"stringValue", "boolValue", "bytesValue"} else None


def _values(content: Any) -> list[Any]:
    values = content.get("values") if isinstance(content, dict) else None
    return values if isinstance(values, list) else []


# Reads messages from the attributes and events of a span, in all versions of the GenAI conventions.
#
# Sources: OpenTelemetry semantic conventions for generative AI: ``gen_ai.input.messages`` and
# ``gen_ai.output.messages`` (since 1.37), ``gen_ai.user.message``, ``gen_ai.choice`` and other events (before), and
# ``gen_ai.content.prompt`` and ``gen_ai.content.completion`` events (first versions); the numbered attributes
# ``gen_ai.prompt.0.content`` of OpenLLMetry, and ``llm.input_messages.0.message.content`` of OpenInference; and
# ``pydantic_ai.all_messages``, which Pydantic AI's agents use instead of input messages.


Attributes = Mapping[str, Any]
_Message = Mapping[str, Any]

_GIVEN = ("gen_ai.input.messages", "pydantic_ai.all_messages", "ai.prompt.messages")
#: What OpenInference and Langfuse record of any span: text, messages, or an object of the application.
VALUES = {
    "user": ("input.value", "langfuse.observation.input", "ai.prompt"),
    "assistant": ("output.value", "langfuse.observation.output"),
}
# The keys of such an object that are the question or the answer: those of `ai.prompt` and of LangChain.
_SAID_IN = ("prompt", "input", "output")
_INDEXED = re.compile(r"(?:gen_ai\.(prompt|completion)|llm\.(in|out)put_messages)\.(\d{1,6})\.(?:message\.)?(.+)")
_CALL_KEY = re.compile(r"tool_calls\.(\d{1,6})\.(?:tool_call\.)?(?:function\.)?(.+)")
_PART_KEY = re.compile(r"contents\.(\d{1,6})\.message_content\.text")
_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_CALLS = {"tool_call": "arguments", "server_tool_call": "server_tool_call"}
_RESULTS = {"tool_call_response": ("response", "result"), "server_tool_call_response": ("server_tool_call_response",)}
# A tuple, not a set: a type may be an unhashable value.
_TEXTS = ("text", "input_text", "output_text")
_SHAPE = frozenset({"role", "parts", "content", "tool_calls"})
# Types of messages of LangChain (a tuple, as above), and the parts of Bedrock's messages that Strands records.
_TYPES = ("human", "ai", "tool", "system")
_BEDROCK = frozenset({"text", "toolUse", "toolResult", "reasoningContent"})
_ASKING, _ANSWERING = frozenset({"user", "human"}), frozenset({"assistant", "model", "ai", ""})


@dataclass(frozen=True)
class SpanEvent:
    """An event of a span, with its message."""

    name: str
    attributes: Attributes


@dataclass(frozen=True)
class TracedCall:
    """A tool call that a model requested, or an executed tool; ``id`` is empty if it has none."""

    id: str
    name: str
    arguments: Any
    result: Any = None


@dataclass(frozen=True)
class Said:
    """The messages of a span.

    Attributes:
        user: text of the last user message; ``None`` without one.
        text: the last assistant text of the output.
        answered: whether there was any output, including tool calls alone.
        results: tool results in the input by call id.
    """

    user: str | None = None
    text: str | None = None
    answered: bool = False
    calls: tuple[TracedCall, ...] = ()
    results: Mapping[str, Any] = field(default_factory=dict)

    def completed(self, more: Said) -> Said:
        """Fill missing values from another record of the same messages."""
        return Said(
            user=more.user if self.user is None else self.user,
            text=more.text if self.text is None else self.text,
            answered=self.answered or more.answered,
            calls=self.calls or more.calls,
            results={**more.results, **self.results},
        )


def read_said(attributes: Attributes, events: Sequence[SpanEvent]) -> Said:
    """Return the messages of a span."""
    sources = [attributes, *(event.attributes for event in events)]
    given = _first(_messages(source.get(name), "user") for name in _GIVEN for source in sources) or _older(
        attributes, events, "prompt", "user"
    )
    came = _first(_messages(source.get("gen_ai.output.messages"), "assistant") for source in sources) or _older(
        attributes, events, "completion", "assistant"
    )
    texts = [text for message in came if _role(message) in _ANSWERING and (text := _text(message)) is not None]
    asked = [text for message in given if _role(message) in _ASKING and (text := _text(message)) is not None]
    return Said(
        user=asked[-1] if asked else None,
        text=texts[-1] if texts else None,
        answered=bool(came),
        calls=tuple(call for message in came for call in _calls(message)),
        results={key: result for message in (*given, *came) for key, result in _results(message)},
    )


def parsed(value: Any) -> Any:
    """Parse JSON in a text; return any other text or value unchanged."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[", '"')):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _first(found: Iterable[Sequence[_Message]]) -> Sequence[_Message]:
    return next((messages for messages in found if messages), ())


def _older(attributes: Attributes, events: Sequence[SpanEvent], name: str, role: str) -> Sequence[_Message]:
    sources = [attributes, *(event.attributes for event in events)]
    return (
        _indexed(attributes, name)
        or _first(_messages(source.get(f"gen_ai.{name}"), role) for source in sources)
        or [message for event in events if (message := _event_message(event, role)) is not None]
        or (_ai_sdk(attributes) if role == "assistant" else ())
        or _first(_messages(_inner(source.get(key)), role) for source in sources for key in VALUES[role])
    )


def _ai_sdk(attributes: Attributes) -> Sequence[_Message]:
    answer = {"content": attributes.get("ai.response.text"), "tool_calls": attributes.get("ai.response.toolCalls")}
    return [{"role": "assistant", **answer}] if any(answer.values()) else ()


def _messages(value: Any, role: str) -> Sequence[_Message]:
    """Return the messages of a list, which may be JSON text; any other text is one message."""
    found = parsed(value)
    if isinstance(found, dict):
        found = _listed(found) or [found]
    if isinstance(found, list):
        found = [_message(item) for part in found for item in (part if isinstance(part, list) else [part])]
    if found and isinstance(found, list) and all(isinstance(item, dict) and _SHAPE & item.keys() for item in found):
        return [{"role": item["type"] if item.get("type") in _TYPES else role, **item} for item in found]
    return [{"role": role, "content": value}] if isinstance(value, str) and value else ()


def _listed(found: Mapping[str, Any]) -> list[Any] | None:
    """Return the messages in a request or a reply of a model: OpenAI's choices, or LangChain's generations."""
    lists = (found.get(key) for key in ("messages", "choices", "generations"))
    return next((value for value in lists if isinstance(value, list)), None)


def _message(item: Any) -> Any:
    """Return the message of a choice, or of what LangChain makes a message from."""
    inner = item.get("message", item.get("kwargs")) if isinstance(item, dict) and not _SHAPE & item.keys() else None
    return _message(inner) if isinstance(inner, dict) else item


def _inner(value: Any) -> Any:
    """Return what is said in an object of the application: a known key, or its only value."""
    found = parsed(value)
    if not isinstance(found, dict) or _listed(found) is not None or _SHAPE & found.keys():
        return value
    known = [found[key] for key in _SAID_IN if found.get(key)] or [*found.values()]
    if len(known) == 1 and isinstance(known[0], str | list):
        return known[0]
    return value if isinstance(value, str) else json.dumps(value)


def _indexed(attributes: Attributes, name: str) -> Sequence[_Message]:
    """Collect messages whose fields are separate attributes: ``gen_ai.prompt.0.role``."""
    messages: dict[int, dict[str, Any]] = {}
    calls: dict[tuple[int, int], dict[str, Any]] = {}
    for key, value in attributes.items():
        found = _INDEXED.fullmatch(key)
        if found is None or (found[1] or {"in": "prompt", "out": "completion"}[found[2]]) != name:
            continue
        message = messages.setdefault(int(found[3]), {})
        call = _CALL_KEY.fullmatch(found[4])
        if _PART_KEY.fullmatch(found[4]):
            message["content"] = "\n".join(text for text in (message.get("content"), value) if isinstance(text, str))
        elif call is None:
            message[found[4]] = value
        else:
            calls.setdefault((int(found[3]), int(call[1])), {})[call[2]] = value
    for (number, _), called in sorted(calls.items(), key=lambda item: item[0]):
        messages[number].setdefault("tool_calls", []).append(called)
    default = "user" if name == "prompt" else "assistant"
    return [{"role": default, **message} for _, message in sorted(messages.items())]


def _event_message(event: SpanEvent, wanted: str) -> _Message | None:
    content = {**event.attributes, **_mapping(parsed(event.attributes.get("gen_ai.event.content")))}
    if event.name == "gen_ai.choice" and wanted == "assistant":
        inner = parsed(content.get("message"))
        if isinstance(inner, str | list):
            inner = {"content": inner}
        return {"role": "assistant", **content, **_mapping(inner)}
    if event.name in _ROLES and wanted == "user":
        return {"role": _ROLES[event.name], **content}
    return None


def _role(message: _Message) -> str:
    role = message.get("role")
    return role.lower() if isinstance(role, str) else ""


def _parts(message: _Message) -> Iterator[Mapping[str, Any]]:
    parts = message.get("parts")
    content = parsed(message.get("content")) if parts is None else parts
    if isinstance(content, list):
        yield from (part for part in content if isinstance(part, dict))


def _text(message: _Message) -> str | None:
    content = message.get("content")
    if isinstance(content, str) and "parts" not in message and not _are_parts(parsed(content)):
        return content or None
    texts = [
        text
        for part in _parts(message)
        if part.get("type", "text") in _TEXTS and isinstance(text := part.get("content", part.get("text")), str)
    ]
    return "\n".join(texts) or None


def _are_parts(value: Any) -> bool:
    """Return whether a content is a list of parts, not an answer in JSON."""
    return (
        bool(value)
        and isinstance(value, list)
        and all(isinstance(part, dict) and ("type" in part or part.keys() <= _BEDROCK) for part in value)
    )


def _calls(message: _Message) -> Iterator[TracedCall]:
    for part in _parts(message):
        key = _CALLS.get(str(part.get("type")))
        if key is not None and isinstance(part.get("name"), str):
            yield TracedCall(_id(part.get("id")), part["name"], parsed(part.get(key)))
        use = _mapping(part.get("toolUse"))
        if isinstance(use.get("name"), str):
            yield TracedCall(_id(use.get("toolUseId")), use["name"], use.get("input"))
    listed = parsed(message.get("tool_calls"))
    for item in listed if isinstance(listed, list) else ():
        call = _mapping(item)
        # OpenAI's format nests the function one level deeper.
        function = {**call, **_mapping(call.get("function"))}
        name, key = (_first_value(function, keys) for keys in (("name", "toolName"), ("id", "toolCallId")))
        if isinstance(name, str):
            arguments = _first_value(function, ("arguments", "args", "input"))
            yield TracedCall(_id(key), name, parsed(arguments))


def _first_value(values: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((values[key] for key in keys if values.get(key) is not None), None)


def _results(message: _Message) -> Iterator[tuple[str, Any]]:
    for part in _parts(message):
        for key in _RESULTS.get(str(part.get("type")), ()):
            if key in part and _id(part.get("id")):
                yield _id(part.get("id")), parsed(part[key])
        result = _mapping(part.get("toolResult"))
        if _id(result.get("toolUseId")):
            yield _id(result.get("toolUseId")), _text(result)
    key = _id(message.get("tool_call_id")) or _id(message.get("id"))
    if _role(message) == "tool" and key and "content" in message:
        yield key, parsed(message["content"])


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _id(value: Any) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
