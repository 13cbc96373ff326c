"""Earlier results: their summaries, whether a run can be a baseline, and what it did not measure."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from agenteval.core.files import LARGEST_RESULTS, below, open_regular
from agenteval.core.records import dataclass
from agenteval.results.case import CaseResult
from agenteval.results.model import SCHEMA_VERSION, EndedBy, Judging, Results, Run, Summary
from agenteval.results.verdict import Unproven


def unmeasured(
    results: Results, max_error_rate: float, quarantined: Collection[str] = frozenset()
) -> tuple[Unproven, ...]:
    """Return why a run does not prove what its statuses show; empty if everything that counts was measured."""
    left_out = [case for _, case in results.cases() if case.id in quarantined] if quarantined else []
    return (
        *_dead_metrics(results.summary, left_out),
        *_budget(results.summary.judging),
        *_incomplete_cases(results.summary, max_error_rate, left_out),
    )


def nothing_decided(results: Results) -> bool:
    """Return whether neither a metric nor a comparison decided about any case."""
    summary, undecided = results.summary, sum(suite.undecided for suite in results.suites)
    is_compared = results.comparison is not None and bool(results.comparison.metrics)
    return not (is_compared or summary.failed or summary.errors) and 0 < summary.passed <= undecided


def is_for_comparison(results: Results) -> bool:
    """Return whether scores are measured that decide nothing alone, but can fall below those of earlier runs."""
    has_scores = any(metric.gating and metric.n for metric in results.summary.metrics.values())
    return has_scores and all(suite.threshold is None for suite in results.suites)


def coverage_notes(results: Results) -> tuple[str, ...]:
    """Return short texts to show beside the numbers of cases: ``judged 50 of 60 cases (limit of 50 calls)``."""
    notes, summary = [], results.summary
    judging = summary.judging
    if judging is not None:
        limits = ", ".join(dict.fromkeys(item.limit for item in judging.not_judged))
        notes.append(f"judged {_of_cases(judging.judged, judging.cases)} ({limits})")
    if summary.not_fully_evaluated:
        notes.append(f"{_cases(summary.not_fully_evaluated)} not fully evaluated")
    undecided = sum(suite.undecided for suite in results.suites)
    if nothing_decided(results) and is_for_comparison(results):
        notes.append("compared with earlier runs only: no metric has a threshold above 0 or gives a verdict")
    elif undecided:
        has = "has" if undecided == 1 else "have"
        notes.append(f"{undecided} of {_cases(summary.cases)} {has} no metric that decides")
    return tuple(notes)


def _dead_metrics(summary: Summary, left_out: Sequence[CaseResult]) -> Iterator[Unproven]:
    ignored = Counter(score.id for case in left_out for score in case.scores if score.status == "error")
    for name, metric in summary.metrics.items():
        errors = metric.errors - ignored[name]
        if metric.gating and errors and not metric.n:
            how = f"all {errors} attempts" if errors > 1 else "it"
            text = f"metric {name!r} has no score: {how} ended in an error"
            yield Unproven(what="metric", text=text, mended_by="outside")


def _budget(judging: Judging | None) -> Iterator[Unproven]:
    if judging is None:
        return
    for item in judging.not_judged:
        if item.cause in {"budget", "key"}:
            text = f"{_of_cases(item.cases, judging.cases)} not fully judged: {item.limit}"
            yield Unproven(what="budget" if item.cause == "budget" else "metric", text=text, mended_by="outside")


def _incomplete_cases(summary: Summary, max_error_rate: float, left_out: Sequence[CaseResult]) -> Iterator[Unproven]:
    cases = summary.not_fully_evaluated - sum(not case.is_fully_evaluated for case in left_out)
    counted = summary.cases - summary.skipped - sum(case.status != "skipped" for case in left_out)
    if cases > 0 and cases > max_error_rate * counted:
        text = f"{_of_cases(cases, counted)} not fully evaluated: a metric ended in an error"
        yield Unproven(what="cases", text=text, mended_by="outside")


def _of_cases(part: int, total: int) -> str:
    return f"{part:,} of {total:,} {'case' if total == 1 else 'cases'}"


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"{count:,} cases"


_ENDINGS: dict[EndedBy, str] = {
    "signal": "it was interrupted",
    "time": "its time limit was reached",
    "budget": "its budget of model calls ended before every case was evaluated",
}


def is_interrupted(run: Run) -> bool:
    """Return whether a signal ended a run."""
    return run.coverage.ended_by == "signal" if run.coverage is not None else not run.complete


def why_no_baseline(results: Results) -> str:
    """Return why a run cannot be a baseline; empty if it can.

    A baseline may have some cases that ended in an error. They have no scores, so the comparison leaves them out.
    """
    return why_partial(results.run) or why_not_evaluated(results.summary)


def why_partial(run: Run) -> str:
    """Return why a run covers only a part of its suites; empty for a whole run.

    Runs of files without a coverage are whole if they are complete and no shard.
    """
    if run.shard is not None:
        part = f"it is shard {run.shard.index} of {run.shard.count} of a run"
        return f"{part}; merge the shards first, with agenteval merge"
    covered = run.coverage
    if covered is not None and covered.ended_by is not None:
        return _ENDINGS[covered.ended_by]
    if not run.complete:
        return "its evaluation was not complete"
    return f"it is partial: {note}" if covered is not None and (note := covered.selection_note) else ""


def why_not_evaluated(summary: Summary) -> str:
    """Return why a run evaluated too little to compare with; empty if at least half of what ended was evaluated."""
    evaluated = summary.passed + summary.failed
    if evaluated and evaluated >= summary.errors:
        return ""
    if not summary.cases:
        return "it contains no case"
    parts = [f"{summary.errors:,} ended in an error"] if summary.errors else []
    parts += [f"{summary.skipped:,} skipped"] if summary.skipped else []
    which = "most of its cases were not evaluated" if evaluated else "none of its cases was evaluated"
    return f"{which}: of {summary.cases:,}, {', '.join(parts)}"


MOST_RUNS = 100
_MOST_NAMED = 5
_HEAD = 256 * 1024
# The summary comes first in results files. Reading a larger file completely could exhaust the memory.
_LARGEST = 256 * 1024 * 1024
_SUITES = re.compile(rb',\s*"suites"\s*:\s*\[')


class EarlierRun(BaseModel):
    """A results file without its cases."""

    # Built on first use: most runs have no history.
    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    schema_version: int
    run: Run
    summary: Summary


@dataclass(frozen=True)
class EarlierRuns:
    """Earlier runs, the oldest first, and warnings about files that could not be read."""

    runs: tuple[EarlierRun, ...] = ()
    warnings: tuple[str, ...] = ()


def read_history(directory: Path | None) -> EarlierRuns:
    """Read the newest runs below a directory, from files named ``*results*.json``; each run counts once.

    Files that cannot be read are omitted and named in the warnings.
    """
    if directory is None:
        return EarlierRuns()
    if not directory.is_dir():
        return EarlierRuns(warnings=(f"history: no such directory: {directory}",))
    found: dict[str, EarlierRun] = {}
    problems = []
    for path in _files(directory):
        try:
            earlier = _read(path)
        except (OSError, ValueError, RecursionError) as error:
            problems.append(f"history: {path.relative_to(directory)} is left out: {_reason(error)}")
        else:
            found[earlier.run.id] = earlier
    newest = sorted(found.values(), key=lambda earlier: earlier.run.started_at)[-MOST_RUNS:]
    if not found and not problems:
        problems.append(f"history: no results file in {directory}")
    if len(problems) > _MOST_NAMED:
        problems[_MOST_NAMED:] = [f"history: {len(problems) - _MOST_NAMED:,} more files are left out"]
    return EarlierRuns(tuple(newest), tuple(problems))


def _files(directory: Path) -> Iterator[Path]:
    for folder, _, names in below(directory):
        yield from (folder / name for name in names if "results" in name and name.endswith(".json"))


def _read(path: Path) -> EarlierRun:
    with open_regular(path, limit=LARGEST_RESULTS) as file:
        head = file.read(_HEAD)
        value = _before_suites(head)
        if value is None:
            if os.fstat(file.fileno()).st_size > _LARGEST:
                raise ValueError("not a results file of agenteval, and very large")
            value = json.loads(head + file.read())
    if not isinstance(value, dict) or not isinstance(version := value.get("schema_version"), int):
        raise ValueError("not a results file of agenteval (it has no schema_version)")
    if version > SCHEMA_VERSION:
        raise ValueError(f"written by a newer agenteval (schema_version {version}, this one reads {SCHEMA_VERSION})")
    return EarlierRun.model_validate(value)


def _before_suites(head: bytes) -> Any:
    suites = _SUITES.search(head)
    if suites is None:
        return None
    try:
        value = json.loads(head[: suites.start()] + b"}")
    except (ValueError, RecursionError):
        return None
    return value if EarlierRun.model_fields.keys() <= value.keys() else None


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return "not valid JSON"
    return str(error)
