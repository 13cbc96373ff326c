"""The history of runs: the numbers of the trend lines, and ``trend.json``."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from agenteval.results.comparison import PoolEntry
from agenteval.results.history import MOST_RUNS, EarlierRun
from agenteval.results.model import Results, Run
from agenteval.results.rollup import mean
from agenteval.results.summary import Summary

Source = Literal["run", "history", "pool"]


@dataclass(frozen=True)
class RunPoint:
    """The figures of one run.

    Attributes:
        started_at: ISO 8601.
        source: this run, a file of the history, or the pool of earlier runs in the results. The pool contains only
            scores.
        suite_cases: number of cases of the suites, of which `cases` ran; ``None`` if unknown.
        metrics: mean score of each metric.
        duration_s: duration of the whole run.
    """

    run_id: str
    started_at: str
    source: Source
    commit: str | None
    ref: str | None = None
    complete: bool = True
    cases: int = 0
    suite_cases: int | None = None
    pass_rate: float | None = None
    score: float | None = None
    metrics: dict[str, float] | None = None
    cost_usd: float | None = None
    duration_s: float | None = None


def trend(results: Results, earlier: Sequence[EarlierRun]) -> tuple[RunPoint, ...]:
    """Return the run and earlier ones, the oldest first; a run in several sources counts once.

    Args:
        results: the run.
        earlier: runs of the history.
    """
    points = [_of_pool(entry) for entry in results.pool if entry.run_id != results.run.id]
    points += [_of_summary(item.run, item.summary, "history") for item in earlier]
    by_id = {point.run_id: point for point in points}
    by_id.pop(results.run.id, None)
    ordered = sorted(by_id.values(), key=lambda point: point.started_at)[-MOST_RUNS:]
    return (*ordered, _of_summary(results.run, results.summary, "run"))


def trend_json(points: Iterable[RunPoint]) -> str:
    """Return the text of trend.json; its runs have the fields of :class:`RunPoint`."""
    runs = [asdict(point) for point in points]
    return f"{json.dumps({'schema_version': 1, 'runs': runs}, indent=1, allow_nan=False)}\n"


def _of_summary(run: Run, summary: Summary, source: Source) -> RunPoint:
    means = {name: _finite(metric.mean) for name, metric in summary.metrics.items()}
    return RunPoint(
        run_id=run.id,
        started_at=run.started_at,
        source=source,
        commit=run.commit,
        ref=run.ref,
        complete=run.complete,
        cases=summary.cases,
        suite_cases=run.coverage.cases if run.coverage is not None else None,
        pass_rate=_finite(summary.pass_rate),
        score=_finite(summary.score),
        metrics={name: value for name, value in means.items() if value is not None},
        cost_usd=_finite(summary.usage.cost_usd),
        duration_s=_finite(run.duration_s),
    )


def _of_pool(entry: PoolEntry) -> RunPoint:
    """Return means over cases; each case counts once, whatever its number of iterations."""
    metrics: dict[str, list[float]] = {}
    scores: list[float | None] = []
    for case in entry.cases.values():
        means = {name: sum(values) / len(values) for name, values in case.scores.items() if values}
        scores.append(mean(means.values()))
        for name, value in means.items():
            metrics.setdefault(name, []).append(value)
    overall = {name: _finite(mean(values)) for name, values in metrics.items()}
    return RunPoint(
        run_id=entry.run_id,
        started_at=entry.created_at,
        source="pool",
        commit=entry.commit,
        cases=len(entry.cases),
        score=_finite(mean(scores)),
        metrics={name: value for name, value in overall.items() if value is not None},
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
