"""Makes cases from recorded traces: each trace contains a question and its answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agenteval.agents.base import Reply
from agenteval.agents.replay.trace import BadLine, Trace
from agenteval.agents.replay.trace_files import read_traces
from agenteval.results.record.fields import Record
from agenteval.suite.case_ids import DistinctNames, asked_by, content_id, excerpt, persona_tag
from agenteval.suite.model import Case, Suite, Turn


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """The answer of a trace.

    Attributes:
        reply: the answer; its latency is ``None`` if the trace has none.
        iteration: the iteration that the trace belongs to, from 0.
        record: the unchanged record of the trace, for metrics that read its fields.
    """

    reply: Reply
    iteration: int
    record: Record = field(repr=False)


def recorded_cases(suite: Suite, traces: Path) -> Iterator[tuple[Case, RecordedAnswer] | BadLine]:
    """Yield a case with its answer for each trace, and each line that is not a trace, in the order of the file.

    Equal questions of the same persona have the same id in every recording; repeats are numbered in order.

    Args:
        suite: its metrics score every trace.
        traces: a file of traces, or a folder that contains one.

    Raises:
        ConfigError: the file cannot be found or read, or it is empty.
    """
    repeats: Counter[str] = Counter()
    names = DistinctNames()
    for item in read_traces(traces):
        yield item if isinstance(item, BadLine) else (_case(suite, item, repeats, names), _answer(item))


def _case(suite: Suite, trace: Trace, repeats: Counter[str], names: DistinctNames) -> Case:
    key = content_id([trace.persona, trace.input])
    repeats[key] += 1
    case_id = f"{suite.path}::{key}" + (f"#{repeats[key]}" if repeats[key] > 1 else "")
    name = names.distinct(asked_by(excerpt(trace.input) or trace.trace_id, trace.persona))
    tags = (persona_tag(trace.persona),) if trace.persona else ()
    metrics = suite.metrics
    if any(metric.only is not None for metric in metrics):
        metrics = tuple(metric for metric in metrics if metric.is_for(case_id, name, tags))
    return Case(
        id=case_id,
        name=name,
        turns=(Turn(trace.input, metrics=metrics),),
        tags=tags,
        cluster=key,
        persona=trace.persona,
        aggregate=suite.aggregate,
    )


def _answer(trace: Trace) -> RecordedAnswer:
    return RecordedAnswer(Reply(trace.output, latency_ms=trace.duration_ms), trace.iteration, trace.record)
