"""Makes cases from recorded traces: each trace contains a question and its answer."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agenteval.agents.base import Reply, is_number, read_json
from agenteval.agents.recording import BadLine, Trace, is_traced
from agenteval.core.errors import AgentError, ConfigError, Kind, Problem
from agenteval.core.files import read_lines
from agenteval.core.records import dataclass, field
from agenteval.core.secrets import beginning
from agenteval.core.text import text_of
from agenteval.results.case import MOST_USED
from agenteval.results.record import Record
from agenteval.suite.cases import DistinctNames, asked_by, content_id, excerpt, persona_tag
from agenteval.suite.model import Case, Suite, Turn

# Bytes; longer lines are not read.
LONGEST_LINE = 10_000_000

# The names of FluxLoop's trace files of an experiment, the most detailed first.
_FILES = ("per_trace.jsonl", "per_trace_analysis/per_trace.jsonl", "trace_summary.jsonl")
_KINDS = {dict: "an object", list: "a list", bool: "a boolean", type(None): "null"}
_SHOWN = 40


def read_traces(path: Path) -> Iterator[Trace | BadLine]:
    """Yield every trace of a file and every line that is not a trace; blank lines are omitted.

    Args:
        path: a JSON Lines file, optionally gzip'ed: records in line order, or an export of the OpenTelemetry
            collector, in order of time; the directory of an experiment; or a directory with a single
            experiment below it.
    """
    file = find_traces(path)
    empty = True
    for item in _read(file):
        empty = False
        yield item
    if empty:
        raise ConfigError(Problem("the file contains no traces", file=str(file), kind=Kind.FILE))


def _read(file: Path) -> Iterator[Trace | BadLine]:
    if is_traced(file):
        from agenteval.agents.traces import read_otel_traces

        return read_otel_traces(file)
    items = (_item(file, number, line) for number, line in read_lines(file, LONGEST_LINE))
    return (item for item in items if item is not None)


def find_traces(path: Path) -> Path:
    """Return the file of traces at a path."""
    if not path.exists():
        raise ConfigError(Problem("no such file or folder of traces", file=str(path), kind=Kind.FILE))
    if not path.is_dir():
        return path
    own = _in_experiment(path)
    if own is not None:
        return own
    folders = [path, *(path / name for name in ("experiments",) if (path / name).is_dir())]
    found = [
        file
        for folder in folders
        for child in sorted(folder.iterdir())
        if child.is_dir() and (file := _in_experiment(child))
    ]
    if len(found) == 1:
        return found[0]
    if not found:
        message = f"no traces in this folder (looked for {', '.join(_FILES)}, also one folder further down)"
    else:
        message = f"several experiments have traces; name one of them: {', '.join(map(str, found))}"
    raise ConfigError(Problem(message, file=str(path), kind=Kind.FILE))


def _in_experiment(folder: Path) -> Path | None:
    return next((folder / name for name in _FILES if (folder / name).is_file()), None)


def _item(file: Path, number: int, line: bytes | None) -> Trace | BadLine | None:
    if line is None:
        limit = LONGEST_LINE // 1_000_000
        return BadLine(file, number, f"the line is longer than {limit} MB; remove the fields that no metric reads")
    if not line.strip():
        return None
    try:
        record = read_json(line.rstrip().decode("utf-8"))
    except UnicodeDecodeError as error:
        return BadLine(file, number, f"not UTF-8 text (byte {error.start} of the line); save the file as UTF-8")
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg} at column {error.colno}; each line must be one whole JSON object"
        return BadLine(file, number, message)
    except (ValueError, RecursionError, AgentError) as error:
        return BadLine(
            file, number, f"JSON that cannot be read: {error}; each line must be one JSON object of usual size"
        )
    if not isinstance(record, dict):
        return BadLine(file, number, f"must be a JSON object with `input` and `output`, not {_kind(record)}")
    problems = _problems(record)
    if problems:
        return BadLine(file, number, "; ".join(problems))
    return _trace(number, record)


def _problems(record: dict[str, Any]) -> list[str]:
    problems = []
    if record.get("input") is None:
        hint = " (this is the result of an evaluation; give the traces that it judged)" if "scores" in record else ""
        problems.append(f"`input` is missing: it is what the agent was asked{hint}")
    trace_id, iteration, persona = record.get("trace_id"), record.get("iteration"), record.get("persona")
    if trace_id is not None and (isinstance(trace_id, bool) or not isinstance(trace_id, str | int)):
        problems.append(f"`trace_id` must be text, not {_kind(trace_id)}")
    if iteration is not None and (isinstance(iteration, bool) or not isinstance(iteration, int) or iteration < 0):
        problems.append(f"`iteration` must be a whole number of at least 0, not {_kind(iteration)}")
    if persona is not None and not isinstance(persona, str):
        problems.append(f"`persona` must be a name, not {_kind(persona)}")
    duration = record.get("duration_ms")
    if duration is not None and not _is_duration(duration):
        most = " (at most 10^15)" if is_number(duration) and duration > MOST_USED else ""
        problems.append(f"`duration_ms` must be a number of milliseconds, not {_kind(duration)}{most}")
    success = record.get("success")
    if success is not None and not isinstance(success, bool):
        problems.append(f"`success` must be true or false, not {_kind(success)}")
    return problems


def _is_duration(value: Any) -> bool:
    return is_number(value) and 0 <= value <= MOST_USED


def _kind(value: Any) -> str:
    if type(value) in _KINDS:
        return _KINDS[type(value)]
    shown = json.dumps(value)
    return shown if len(shown) <= _SHOWN else f"{beginning(shown, _SHOWN - 1)}…"


def _trace(number: int, record: dict[str, Any]) -> Trace:
    if record.get("output") is None and record.get("final_output") is not None:
        record = {**record, "output": record["final_output"]}
    return Trace(
        line=number,
        trace_id=text_of(record.get("trace_id")),
        iteration=record.get("iteration") or 0,
        persona=record.get("persona") or None,
        input=text_of(record["input"]),
        output=text_of(record.get("output")),
        duration_ms=record.get("duration_ms"),
        success=record.get("success"),
        record=record,
    )


@dataclass(frozen=True)
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
