"""The trend lines of the HTML report, and a table of their values."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from agenteval.core.escape import one_line
from agenteval.core.records import asdict, dataclass
from agenteval.report import words
from agenteval.report.charts import axis_around
from agenteval.report.parts import ChartLine, Part, table
from agenteval.report.words import moment, short_commit
from agenteval.results.comparison import PoolEntry
from agenteval.results.history import MOST_RUNS, EarlierRun
from agenteval.results.model import Results, Run, Summary
from agenteval.results.rollup import mean

Source = Literal["run", "history", "pool"]


@dataclass(frozen=True)
class RunPoint:
    """The figures of one run.

    Attributes:
        started_at: ISO 8601.
        source: this run, a file of the history, or the pool of earlier runs in the results. The pool contains only
            scores.
        suite_cases: number of cases of the suites, of which `cases` ran; ``None`` if unknown.
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


def earlier_pool(results: Results, base: Results | None = None) -> tuple[PoolEntry, ...]:
    """Return the earlier runs of the base, the oldest first; none of them is a pass of this run."""
    own = results.run.id
    # The pool of the results, which later runs compare with, lacks the cases that changed.
    entries = {entry.run_id: entry for entry in (*results.pool, *(base.pool if base else ()))}
    # The further passes of a run have its id and a number.
    earlier = [entry for id_, entry in entries.items() if id_ != own and not id_.startswith(f"{own}.")]
    return tuple(sorted(earlier, key=lambda entry: entry.created_at))


def trend(results: Results, earlier: Sequence[EarlierRun], base: Results | None = None) -> tuple[RunPoint, ...]:
    """Return the run and earlier ones, the oldest first; a run in several sources counts once."""
    points = [_of_pool(entry) for entry in earlier_pool(results, base)]
    points += [_of_summary(base.run, base.summary, "pool")] if base else []
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


_MOST_METRICS = 12
_FEWEST_VALUES = 2
_LONGEST_NAME = 60
_LEAST_SHARE = 0.04  # the shortest axis of scores and rates
_LEAST_RISE = 0.2  # the shortest axis of other measures, as a share of the largest value
_SOURCES = {"run": "this run", "history": "history", "pool": "pool of the baseline"}


def trend_part(points: Sequence[RunPoint]) -> Part:
    """Return the lines of pass rate, mean score, each metric, cost and duration that have at least two values."""
    names = tuple(_name(point) for point in points)
    metrics = list(dict.fromkeys(name for point in reversed(points) for name in point.metrics or {}))[:_MOST_METRICS]
    wanted: list[tuple[str, Callable[[RunPoint], float | None], Callable[[float], str], float]] = [
        ("Pass rate", lambda point: point.pass_rate, words.percent, 1.0),
        ("Mean score", lambda point: point.score, words.number, 1.0),
        *((one_line(name, _LONGEST_NAME), _of_metric(name), words.number, 1.0) for name in metrics),
        ("Cost", lambda point: point.cost_usd or None, words.money, math.inf),
        ("Duration", lambda point: point.duration_s, words.duration, math.inf),
    ]
    found = (_line(title, tuple(map(value, points)), names, write, most) for title, value, write, most in wanted)
    shown = tuple(line for line in found if line)
    if not shown:
        return Part("trends", "Trends")
    columns = ("Run", "Commit", "From", "#Cases", *(f"#{line.title}" for line in shown))
    rows = (
        (
            name,
            short_commit(point.commit),
            _SOURCES[point.source] + ("" if point.complete else ", interrupted"),
            _cases(point),
            *(_written(line, place) for line in shown),
        )
        for place, (point, name) in enumerate(zip(points, names, strict=True))
    )
    values = table("As a table", columns, rows, MOST_RUNS + 1, folded=True)
    note = "The large dot is this run. The band is the range of the earlier runs. The axes need not begin at 0."
    return Part("trends", "Trends", paragraphs=(note,), charts=shown, tables=(values,))


def _line(
    title: str,
    values: tuple[float | None, ...],
    names: tuple[str, ...],
    write: Callable[[float], str],
    most: float,
) -> ChartLine | None:
    """Return the line of one measure, whose largest possible value is ``most``; ``None`` if it has too few values."""
    known = [value for value in values if value is not None]
    if len(known) < _FEWEST_VALUES:
        return None
    least_span = _LEAST_SHARE if math.isfinite(most) else (max(known) * _LEAST_RISE or 1.0)
    earlier = [value for value in values[:-1] if value is not None]
    return ChartLine(
        title,
        values,
        names,
        write,
        axis_around(known, least_span, most),
        (min(earlier), max(earlier)) if earlier else None,
    )


def _cases(point: RunPoint) -> str:
    is_part = point.suite_cases is not None and point.cases < point.suite_cases
    return f"{point.cases:,} of {point.suite_cases:,}" if is_part else f"{point.cases:,}"


def _of_metric(name: str) -> Callable[[RunPoint], float | None]:
    return lambda point: (point.metrics or {}).get(name)


def _name(point: RunPoint) -> str:
    return " ".join(part for part in (moment(point.started_at), short_commit(point.commit)[:7]) if part)


def _written(line: ChartLine, place: int) -> str:
    value = line.values[place]
    return words.NOTHING if value is None else line.write(value)
