"""Converts an imported run to results."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from agenteval.results.case import CaseResult, IterationResult, SuiteResult
from agenteval.results.comparison import PoolCase, PoolEntry
from agenteval.results.model import Results, Run, Tool
from agenteval.results.rollup import summarise, turn_means
from agenteval.results.summary import Summary
from agenteval.suite.model import OVERALL

_DIGITS = 16


@dataclass(frozen=True)
class Recording:
    """A run of another tool.

    Attributes:
        tool: name of the tool.
        version: version of the tool; empty if unknown.
        started_at: start as written in the file; most files have either start or end, or neither.
        finished_at: end as written in the file.
        questions: id of a case whose question differs from the known case with this id → its question.
        summary: the summary of a file without cases.
    """

    tool: str
    version: str
    suites: Sequence[SuiteResult]
    started_at: str | None = None
    finished_at: str | None = None
    duration_s: float = 0.0
    commit: str | None = None
    questions: Mapping[str, str] = field(default_factory=dict)
    summary: Summary | None = None


def results_of(recording: Recording, digest: str, modified: datetime) -> Results:
    """Return the run as results.

    Args:
        recording: the run.
        digest: hash of the files' content; it becomes the run's id, so that one file is one run.
        modified: time when the file was written; used if the file contains no time.
    """
    started, finished = _period(recording, modified)
    run = Run(
        id=f"{recording.tool}-{digest[:_DIGITS]}",
        started_at=_timestamp(started),
        finished_at=_timestamp(finished),
        duration_s=round((finished - started).total_seconds(), 3),
        complete=True,
        commit=recording.commit,
    )
    cases = [case for suite in recording.suites for case in suite.cases]
    return Results(
        tool=Tool(name=recording.tool, version=recording.version),
        run=run,
        summary=recording.summary or summarise(cases),
        suites=list(recording.suites),
        pool=[_pool_entry(recording, run)],
    )


def _pool_entry(recording: Recording, run: Run) -> PoolEntry:
    """Return the pool entry. Only cases with another question have a fingerprint: the metrics are unknown."""
    return PoolEntry(
        commit=run.commit,
        run_id=run.id,
        created_at=run.started_at,
        cases={
            case.id: PoolCase(
                fingerprint=_fingerprint(recording.questions.get(case.id)), scores=_pool_scores(suite, case)
            )
            for suite in recording.suites
            for case in suite.cases
        },
    )


def _fingerprint(question: str | None) -> str:
    if question is None:
        return ""
    # The question differs, so this value differs from the fingerprints of all known cases.
    return f"asked:{hashlib.sha256(question.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGITS]}"


def _pool_scores(suite: SuiteResult, case: CaseResult) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for iteration in case.iterations:
        for name, score in _iteration_scores(suite, iteration).items():
            found.setdefault(name, []).append(score)
    return found


def _iteration_scores(suite: SuiteResult, iteration: IterationResult) -> dict[str, float]:
    overall = {OVERALL: iteration.score} if suite.threshold is not None and iteration.score is not None else {}
    return turn_means(iteration.turns) | overall


def _period(recording: Recording, modified: datetime) -> tuple[datetime, datetime]:
    started, finished = _time(recording.started_at), _time(recording.finished_at)
    try:
        duration = timedelta(seconds=recording.duration_s)
        if started is not None:
            return started, started + duration
        finished = finished or modified
        return finished - duration, finished
    except OverflowError:
        # The duration exceeds the range of dates. The file is wrong, but its scores may be right.
        return modified, modified


def _time(written: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(written or "")
    except ValueError:
        return None
    try:
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except OverflowError:
        return None


def _timestamp(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
