"""Spans that a file has as rows of JSON: of Langfuse, LangSmith, Phoenix and OpenTelemetry's SDK, and chats."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from agenteval.agents.base import MOST_OF_STREAM, check_size
from agenteval.agents.otel import AgentSpan, agent_span
from agenteval.agents.otel_messages import Span, SpanEvent
from agenteval.agents.recording import LONGEST_LINE, BadLine, rows_in
from agenteval.core.errors import AgentError
from agenteval.core.files import read_lines

# What a span has, and where the rows have it: in the interface and in the export of Langfuse, in LangSmith's runs,
# then in the spans of Phoenix and of OpenTelemetry's SDK, whose inner keys Phoenix's tables join with points.
# Langfuse calls the project's id `projectId`; LangSmith calls it `session_id`, which is therefore no session.
_PATHS: Mapping[str, Sequence[str]] = {
    "id": ("context.span_id", "id"),
    "trace": ("traceId", "trace_id", "context.trace_id"),
    "parent": ("parentObservationId", "parent_observation_id", "parent_run_id", "parent_id"),
    "start": ("startTime", "start_time", "timestamp"),
    "end": ("endTime", "end_time"),
    "openinference.span.kind": ("type", "run_type", "span_kind"),
    "input.value": ("input", "inputs"),
    "output.value": ("output", "outputs"),
    "session.id": ("sessionId",),
    "usage": ("usageDetails", "usage_details"),
    "error": ("error",),
    "status": ("level", "status_code", "status.status_code"),
    "message": ("statusMessage", "status_message", "status.description"),
}
_USAGE = {"llm.token_count.prompt": "input", "llm.token_count.completion": "output"}
_NOT_A_SPAN = "needs `id`, the trace's id and a start; export whole observations or runs"
_NO_CHAT = "`messages` needs a message of the user and an answer of the assistant after it"


def read_spans(file: Path) -> Iterator[tuple[int, str, AgentSpan] | BadLine]:
    """Yield every span with its line and the id of its trace, and every row that is not a span."""
    for number, row in _rows(file):
        if isinstance(row, BadLine):
            yield row
        elif isinstance(row, dict) and "messages" in row:
            turns = list(_turns(number, row["messages"]))
            yield from ((number, span.trace_id, agent_span(span, None, said)) for span, said in turns)
            if not turns:
                yield BadLine(file, number, _NO_CHAT)
        else:
            span = _span(row if isinstance(row, dict) else {})
            yield (
                BadLine(file, number, _NOT_A_SPAN)
                if span is None
                else (number, span[0].trace_id, agent_span(span[0], None, *span[1:]))
            )


def _rows(file: Path) -> Iterator[tuple[int, Any]]:
    """Yield the rows of JSON Lines, or of one document: a list, or a list in it."""
    lines: Iterator[tuple[int, bytes | None]] = (
        (number, line) for number, line in read_lines(file, LONGEST_LINE) if line is None or line.strip()
    )
    first = next(lines, None)
    if first is not None and first[1] is not None and not _is_json(first[1]):
        lines = iter([(first[0], b"".join([first[1], *(line or b"" for _, line in lines)]))])
    elif first is not None:
        lines = chain([first], lines)
    for number, line in lines:
        try:
            if line is None:
                raise ValueError(f"the line is longer than {LONGEST_LINE // 1_000_000} MB")
            check_size(line, MOST_OF_STREAM)
            values = [*_documents(line.decode("utf-8-sig"))]
        except (ValueError, RecursionError, AgentError) as error:
            yield number, BadLine(file, number, f"not valid JSON: {error}")
            continue
        yield from ((number, row) for value in values for row in rows_in(value))


def _documents(text: str) -> Iterator[Any]:
    """Yield the documents of a text; the SDK of OpenTelemetry prints one after the other."""
    read, find, end = json.JSONDecoder().raw_decode, re.compile(r"\S").search, 0
    while begin := find(text, end):
        value, end = read(text, begin.start())
        yield value


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _span(row: Mapping[str, Any]) -> tuple[Span, dict[str, Any], list[SpanEvent]] | None:
    found = {
        name: next((value for key in keys if (value := _at(row, key)) is not None), None)
        for name, keys in _PATHS.items()
    }
    start, end = _nanoseconds(found["start"]), _nanoseconds(found["end"])
    # A trace of Langfuse without its observations is its only span.
    trace = found["trace"] or ("timestamp" in row and found["id"])
    if not (isinstance(found["id"], str) and isinstance(trace, str) and trace and start):
        return None
    usage = found["usage"] if isinstance(found["usage"], dict) else {}
    failed = found["error"] or (found["status"] == "ERROR" and (found["message"] or True))
    span = Span(
        traceId=trace,
        spanId=found["id"] or "-",
        parentSpanId=found["parent"] if isinstance(found["parent"], str) else None,
        name=row["name"] if isinstance(row.get("name"), str) else None,
        startTimeUnixNano=start,
        endTimeUnixNano=end,
        status={"code": 2, "message": failed if isinstance(failed, str) else None} if failed else None,
    )
    written = row.get("attributes")
    attributes = dict(written) if isinstance(written, dict) else {}
    attributes |= {key.removeprefix("attributes."): row[key] for key in row if key.startswith("attributes.")}
    attributes |= {name: found[name] for name in found if "." in name and found[name] is not None}
    attributes |= {name: usage[key] for name, key in _USAGE.items() if key in usage}
    events = [event for event in row.get("events") or () if isinstance(event, dict)]
    said = [SpanEvent(str(event.get("name")), event["attributes"]) for event in events if event.get("attributes")]
    return span, attributes, said


def _at(row: Mapping[str, Any], path: str) -> Any:
    outer, _, inner = path.partition(".")
    holder = row.get(outer)
    return holder.get(inner) if inner and isinstance(holder, dict) else row.get(path)


def _nanoseconds(time: Any) -> int:
    if isinstance(time, int):
        # As pandas writes times.
        return max(time, 0) * 1_000_000
    try:
        moment = datetime.fromisoformat(time)
        return max(int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000_000) * 1000, 0)
    except (TypeError, ValueError, OverflowError):
        return 0


def _turns(line: int, messages: Any) -> Iterator[tuple[Span, dict[str, Any]]]:
    """Yield a span for each question of a chat, with the messages up to the next one as its answer."""
    said = [message for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []
    asked = [index for index, message in enumerate(said) if message.get("role") == "user"]
    for turn, (start, end) in enumerate(zip(asked, [*asked[1:], len(said)], strict=False)):
        if any(message.get("role") == "assistant" for message in said[start:end]):
            span = Span(
                traceId=f"line {line}, turn {turn}",
                spanId="-",
                startTimeUnixNano=line * 1000 + turn,
                endTimeUnixNano=0,
            )
            yield (
                span,
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.conversation.id": f"line {line}",
                    "gen_ai.input.messages": said[: start + 1],
                    "gen_ai.output.messages": said[start + 1 : end],
                },
            )
