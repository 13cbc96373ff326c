"""The trend lines of the HTML report, and a table of their values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from agenteval.core.text.escape import one_line
from agenteval.report.view import view
from agenteval.report.view.charts import Line, axis_around
from agenteval.report.view.moments import moment, short_commit
from agenteval.report.view.parts import Part, table
from agenteval.report.view.trend import RunPoint
from agenteval.results.history import MOST_RUNS

_MOST_METRICS = 12
_FEWEST_VALUES = 2
_LONGEST_NAME = 60
_LEAST_SHARE = 0.04  # the shortest axis of scores and rates
_LEAST_RISE = 0.2  # the shortest axis of other measures, as a share of the largest value
_SOURCES = {"run": "this run", "history": "history", "pool": "pool of the baseline"}


def trend_part(points: Sequence[RunPoint]) -> Part:
    """Return the lines of pass rate, mean score, each metric, cost and duration that have at least two values.

    Args:
        points: the runs, the oldest first.
    """
    names = tuple(_name(point) for point in points)
    metrics = list(dict.fromkeys(name for point in reversed(points) for name in point.metrics or {}))[:_MOST_METRICS]
    wanted: list[tuple[str, Callable[[RunPoint], float | None], Callable[[float], str], float]] = [
        ("Pass rate", lambda point: point.pass_rate, view.percent, 1.0),
        ("Mean score", lambda point: point.score, view.number, 1.0),
        *((one_line(name, _LONGEST_NAME), _of_metric(name), view.number, 1.0) for name in metrics),
        ("Cost", lambda point: point.cost_usd or None, view.money, math.inf),
        ("Duration", lambda point: point.duration_s, view.duration, math.inf),
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
) -> Line | None:
    """Return the line of one measure, whose largest possible value is ``most``; ``None`` if it has too few values."""
    known = [value for value in values if value is not None]
    if len(known) < _FEWEST_VALUES:
        return None
    least_span = _LEAST_SHARE if math.isfinite(most) else (max(known) * _LEAST_RISE or 1.0)
    earlier = [value for value in values[:-1] if value is not None]
    return Line(
        title,
        values,
        names,
        write,
        axis_around(known, least_span, most),
        (min(earlier), max(earlier)) if earlier else None,
    )


def _cases(point: RunPoint) -> str:
    """Return the number of cases, with that of the suites if it is higher."""
    is_part = point.suite_cases is not None and point.cases < point.suite_cases
    return f"{point.cases:,} of {point.suite_cases:,}" if is_part else f"{point.cases:,}"


def _of_metric(name: str) -> Callable[[RunPoint], float | None]:
    return lambda point: (point.metrics or {}).get(name)


def _name(point: RunPoint) -> str:
    return " ".join(part for part in (moment(point.started_at), short_commit(point.commit)[:7]) if part)


def _written(line: Line, place: int) -> str:
    value = line.values[place]
    return view.NOTHING if value is None else line.write(value)
