"""Recordings in OpenTelemetry traces."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from agenteval.agents.base import Reply
from agenteval.agents.otel import CASE_ATTRIBUTES, AgentSpan, OtelAnswer, agent_span, answer_of, record_event
from agenteval.agents.otel_messages import Export, SpanEvent, read_said
from agenteval.agents.recording import (
    BadLine,
    RecordedCase,
    RecordedQuestion,
    RecordedTurn,
    Trace,
    is_otel,
    read_exports,
)
from agenteval.agents.span_rows import read_spans
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.records import dataclass, field, replace
from agenteval.results.record import trace_of_reply

# Reads the answers of an agent from its OpenTelemetry traces.
#
# A trace is complete only at the end of the file, as its spans may be anywhere in it. Until then the reader keeps
# the text of questions, answers and tool calls, not the exported spans.


@dataclass
class _Trace:
    """The data of a trace that is still being read.

    Every model call repeats the conversation before it, so equal texts and results are stored once.
    """

    line: int
    spans: dict[str, AgentSpan] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    results: set[str] = field(default_factory=set)

    def add(self, span: AgentSpan) -> None:
        """Add a span; one that was sent twice counts once."""
        if span.span_id in self.spans:
            return
        said = span.said
        if said.user is not None or said.text is not None or said.results:
            results = {key: result for key, result in said.results.items() if key not in self.results}
            self.results.update(results)
            said = replace(said, user=self._one(said.user), text=self._one(said.text), results=results)
            span = replace(span, said=said)
        self.spans[span.span_id] = span

    def _one(self, text: str | None) -> str | None:
        return None if text is None else self.texts.setdefault(text, text)


def read_answers(file: Path) -> Iterator[OtelAnswer | BadLine]:
    """Yield every bad line of a file, then the answers of all its traces in order of time.

    Traces without a span of an agent or a model are omitted.

    Args:
        file: JSON, one ``ExportTraceServiceRequest`` a line, optionally gzip'ed. Events in an
            ``ExportLogsServiceRequest`` of the same file count.
    """
    traces: dict[str, _Trace] = {}
    records: dict[str, list[SpanEvent]] = {}
    bad = False
    for item in read_exports(file) if is_otel(file) else read_spans(file):
        if isinstance(item, BadLine):
            bad = True
            yield item
        elif len(item) == 2:
            _collect(*item, traces, records)
        else:
            line, trace_id, span = item
            traces.setdefault(trace_id, _Trace(line)).add(span)
    answers = _answers(traces, records)
    if not answers and not bad:
        message = "the file contains no span of an agent or a model (gen_ai.operation.name)"
        raise ConfigError(Problem(message, file=str(file), kind=Kind.FILE))
    # Yielded and released one by one.
    answers.reverse()
    while answers:
        yield answers.pop()


def _collect(line: int, export: Export, traces: dict[str, _Trace], records: dict[str, list[SpanEvent]]) -> None:
    for resource, exported in export.spans():
        trace = traces.setdefault(exported.trace_id, _Trace(line))
        trace.add(agent_span(exported, resource))
    for record in export.records():
        if record.span_id:
            records.setdefault(record.span_id, []).append(record_event(record))


def _answers(traces: dict[str, _Trace], records: dict[str, list[SpanEvent]]) -> list[OtelAnswer]:
    """Return the answers in order of time; clears the traces."""
    answers = []
    while traces:
        trace_id, trace = traces.popitem()
        spans = [_with_records(span, records.pop(span.span_id, ())) for span in trace.spans.values()]
        answer = answer_of(trace_id, trace.line, spans)
        if answer is not None:
            answers.append(answer)
    return sorted(answers, key=lambda answer: (answer.start_ns, answer.trace_id))


def _with_records(span: AgentSpan, records: Sequence[SpanEvent]) -> AgentSpan:
    return replace(span, said=span.said.completed(read_said({}, records))) if records else span


NO_CONTENT = (
    "the question or the answer was not recorded; enable the recording of content in the instrumentation "
    "(OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT)"
)


def read_otel_traces(file: Path) -> Iterator[Trace | BadLine]:
    """Yield every bad line, then the traces in order of time.

    A repeated question is the next iteration.
    """
    asked: Counter[str] = Counter()
    for item in read_answers(file):
        if isinstance(item, BadLine):
            yield item
        elif item.input is None or (item.response is None and item.error is None):
            yield BadLine(file, item.line, f"trace {item.trace_id}: {NO_CONTENT}")
        else:
            yield _trace(item, item.input, asked[item.input])
            asked[item.input] += 1


def _trace(answer: OtelAnswer, question: str, iteration: int) -> Trace:
    output = answer.response or ""
    success = answer.error is None
    record = trace_of_reply(
        input=question,
        output=output,
        duration_ms=answer.latency_ms,
        success=success,
        iteration=iteration,
        trace_id=answer.trace_id,
        usage=answer.usage,
        tool_calls=answer.tool_calls,
    )
    return Trace(
        line=answer.line,
        trace_id=answer.trace_id,
        iteration=iteration,
        persona=None,
        input=question,
        output=output,
        duration_ms=answer.latency_ms,
        success=success,
        record=record if success else {**record, "error": answer.error},
    )


# The number of bad lines that an error lists individually.
_NAMED = 20

_Conversation = Sequence[OtelAnswer]


class RecordedTraces:
    """Conversations by the case that they name, or by their first question.

    Traces with the same conversation id are its turns, in order of time; any other trace is a conversation.
    """

    is_run: ClassVar[bool] = True

    def __init__(self, file: Path, answers: Iterable[OtelAnswer]) -> None:
        self._file = file
        self._by_case: defaultdict[str, list[_Conversation]] = defaultdict(list)
        self._by_input: defaultdict[str, list[_Conversation]] = defaultdict(list)
        self._count = 0
        for conversation in _conversations(answers):
            self._count += len(conversation)
            case = next((answer.case for answer in conversation if answer.case), None)
            first = conversation[0].input
            if case is not None:
                self._by_case[case].append(conversation)
            elif first is not None:
                self._by_input[first.strip()].append(conversation)

    def find(self, asked: RecordedQuestion) -> RecordedCase:
        """Return the conversations of a case as its iterations, in order of time."""
        return {number: _turns(found) for number, found in enumerate(self._conversations(asked))}

    def notices(self, asked: Iterable[RecordedQuestion]) -> tuple[str, ...]:
        """Report the number of traces that do not belong to any case."""
        used = {id(found): len(found) for case in asked for found in self._conversations(case)}
        left = self._count - sum(used.values())
        if not left:
            return ()
        belong, their = ("belongs", "its") if left == 1 else ("belong", "their")
        hint = f"; let the agent name it in the attribute {CASE_ATTRIBUTES[0]}" if left == self._count else ""
        return (
            f"{self._file.name}: {left} of {self._count} traces {belong} to no case of this run: "
            f"none has {their} input or name{hint}",
        )

    def _conversations(self, asked: RecordedQuestion) -> Sequence[_Conversation]:
        named = [found for key in dict.fromkeys((asked.name, asked.case_id)) for found in self._by_case.get(key, ())]
        if named:
            return sorted(named, key=lambda conversation: conversation[0].start_ns)
        same_start = self._by_input.get(asked.inputs[0].strip(), []) if asked.inputs else []
        # Several cases may have the same first question.
        return [found for found in same_start if _asks(found, asked.inputs)] or same_start


def read_recorded_traces(file: Path) -> RecordedTraces:
    """Read the answers in a file of traces."""
    problems: list[Problem] = []
    more = 0

    def answers() -> Iterator[OtelAnswer]:
        nonlocal more
        for item in read_answers(file):
            if not isinstance(item, BadLine):
                yield item
            elif len(problems) < _NAMED:
                problems.append(Problem(item.message, file=str(file), line=item.line, kind=Kind.FILE))
            else:
                more += 1

    recording = RecordedTraces(file, answers())
    if problems:
        rest = [Problem(f"{more} more lines are not valid", file=str(file), kind=Kind.FILE)] if more else []
        raise ConfigError([*problems, *rest])
    return recording


def _conversations(answers: Iterable[OtelAnswer]) -> Iterable[_Conversation]:
    conversations: dict[str, list[OtelAnswer]] = {}
    for answer in answers:
        # No trace id equals a conversation id with this prefix.
        key = f"conversation:{answer.conversation}" if answer.conversation else answer.trace_id
        conversations.setdefault(key, []).append(answer)
    return conversations.values()


def _asks(conversation: _Conversation, inputs: Sequence[str]) -> bool:
    pairs = zip(conversation, inputs, strict=False)
    return all(answer.input is None or answer.input.strip() == text.strip() for answer, text in pairs)


def _turns(conversation: _Conversation) -> dict[int, RecordedTurn]:
    # A trace that names its case is used without comparing questions, because agents may rephrase them.
    named = any(answer.case for answer in conversation)
    return {
        number: RecordedTurn(_answer(answer), None if named else answer.input)
        for number, answer in enumerate(conversation)
    }


def _answer(answer: OtelAnswer) -> Reply | str:
    if answer.error is not None:
        return answer.error
    if answer.response is None:
        return f"trace {answer.trace_id}: {NO_CONTENT}"
    return Reply(
        response=answer.response, tool_calls=answer.tool_calls, usage=answer.usage, latency_ms=answer.latency_ms
    )
