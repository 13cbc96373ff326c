"""The relevant part of OTLP's JSON format (opentelemetry-proto: trace, logs and common, version 1).

Ids are kept unchanged: hexadecimal as in the specification, or base64 as in protobuf's JSON mapping.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

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
        """Return whether the span ended with an error."""
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
