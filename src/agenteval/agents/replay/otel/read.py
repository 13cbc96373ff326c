"""Reads the answers of an agent from its OpenTelemetry traces.

A trace is complete only at the end of the file, as its spans may be anywhere in it. Until then the reader keeps
the text of questions, answers and tool calls, not the exported spans.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agenteval.agents.replay.otel.answer import OtelAnswer, answer_of
from agenteval.agents.replay.otel.file import read_exports
from agenteval.agents.replay.otel.messages import SpanEvent, read_said
from agenteval.agents.replay.otel.shape import Export
from agenteval.agents.replay.otel.span import AgentSpan, agent_span, record_event
from agenteval.agents.replay.trace import BadLine
from agenteval.core.errors import ConfigError, Kind, Problem


@dataclass(slots=True)
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

    Raises:
        ConfigError: the file cannot be read, or has no trace of an agent.
    """
    traces: dict[str, _Trace] = {}
    records: dict[str, list[SpanEvent]] = {}
    bad = False
    for item in read_exports(file):
        if isinstance(item, BadLine):
            bad = True
            yield item
        else:
            _collect(*item, traces, records)
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
