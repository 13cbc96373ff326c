"""Charts: their data, their drawings as SVG, and the trend lines of this run and earlier ones."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from agenteval.core.escape import html, one_line
from agenteval.core.records import asdict, dataclass
from agenteval.report import words
from agenteval.report.metrics import MetricRow
from agenteval.report.parts import Chart, ChartLine, Histogram, Mark, Part, Unit, table
from agenteval.report.words import moment, short_commit
from agenteval.results.comparison import BaselineRun
from agenteval.results.history import MOST_RUNS, EarlierRun
from agenteval.results.model import Results, Run, Summary
from agenteval.results.rollup import mean

_BINS = 20
_TAIL_SHARE = 0.95
_TAIL_FACTOR = 3
_ROOM = 1.5
_MARGIN = 0.2


def score_histogram(title: str, scores: Sequence[float], threshold: float | None) -> Histogram:
    """Return the distribution of scores from 0 to 1, with a mark at the threshold if there is one."""
    marks = () if threshold is None else ((threshold, f"threshold {threshold:.2f}"),)
    return Histogram(title, "score", 0.0, 1.0, _counts(scores, 0.0, 1.0), marks=marks)


def time_histogram(title: str, ordered: Sequence[float], marks: Sequence[Mark] = ()) -> Histogram:
    """Return the distribution of ascending times in ms; the last bin contains the long tail."""
    longest = ordered[-1]
    most = ordered[math.ceil(_TAIL_SHARE * (len(ordered) - 1))]
    high = _rounded_up(_ROOM * most if longest > _TAIL_FACTOR * most else longest)
    beyond = len(ordered) - bisect_right(ordered, high)
    counts = _counts(ordered, 0.0, high)
    return Histogram(title, "ms", 0.0, high, counts, beyond, tuple(mark for mark in marks if mark[0] <= high))


def axis_around(values: Sequence[float], least_span: float, most: float = math.inf) -> tuple[float, float]:
    """Return the ends of an axis with some room around the values, which are from 0 to ``most``."""
    low, high = min(values), max(values)
    span = max(least_span, (high - low) * (1 + 2 * _MARGIN))
    start = max(0.0, min((low + high - span) / 2, most - span))
    return start, min(most, start + span)


def _counts(values: Sequence[float], low: float, high: float) -> tuple[int, ...]:
    counts = [0] * _BINS
    width = (high - low) / _BINS
    # Most of thousands of values are equal.
    for value, times in Counter(values).items():
        # Without the small addition, 0.15 would be in the bin below, and 1.0 above the last bin.
        counts[min(_BINS - 1, max(0, int((min(value, high) - low) / width + 1e-9)))] += times
    return tuple(counts)


def _rounded_up(value: float) -> float:
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= value * (1 - 1e-12))


WIDTH = 560
_PLOT = (44, 34, 504, 150)  # left, top, width, height; the labels of two marks fit above it
_LINE = 14
_TICKS = 5
_LEFT, _RIGHT, _TOP, _HEIGHT = 84, 12, 10, 110  # of a trend line
_SMALL_WIDTH, _SMALL_HEIGHT = 180, 20

_Dot = tuple[float, float, str, float]  # x, y, name and value


def svg(chart: Chart) -> str:
    """Return the drawing, an ``svg`` element; every label in it is escaped."""
    if isinstance(chart, ChartLine):
        return line_svg(chart)
    return _histogram(chart)


def line_svg(chart: ChartLine) -> str:
    """Return a line with a dot for each run; missing values interrupt the line, and the last run is apart."""
    low, high = chart.axis
    right = WIDTH - _RIGHT
    step = (right - _LEFT) / max(1, len(chart.values) - 1)

    def place_of(value: float) -> float:
        return _TOP + _HEIGHT * (1 - min(1.0, max(0.0, (value - low) / (high - low))))

    parts = []
    if chart.band:
        top, bottom = place_of(chart.band[1]), place_of(chart.band[0])
        spread = f"earlier runs: {chart.write(chart.band[0])} to {chart.write(chart.band[1])}"
        parts.append(
            f'<rect class="band" x="{_LEFT}" y="{top - 2:.1f}" width="{right - _LEFT}"'
            f' height="{bottom - top + 4:.1f}">'
            f"<title>{html(spread)}</title></rect>"
        )
    for share in (0.0, 0.5, 1.0):
        y = _TOP + _HEIGHT * (1 - share)
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{right}"/>')
        parts.append(_label(_LEFT - 8, y + 4, chart.write(low + (high - low) * share), "end"))
    dots = [
        (_LEFT + place * step, place_of(value), name, value) if value is not None else None
        for place, (value, name) in enumerate(zip(chart.values, chart.names, strict=True))
    ]
    last = dots[-1] if dots else None
    if last and len(dots) > 1 and (previous := dots[-2]):
        parts.append(f'<path class="step" d="M{previous[0]:.1f} {previous[1]:.1f}L{last[0]:.1f} {last[1]:.1f}"/>')
    for stretch in _stretches(dots[:-1]):
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y, _, _ in stretch)
        parts.append(f'<path class="line" d="M{path}"/>')
        parts += (_dot(dot, chart, "dot", 3.5) for dot in stretch)
    if last:
        parts.append(_dot(last, chart, "dot now", 5.5))
    return _drawing(chart.title, _TOP * 2 + _HEIGHT, parts)


def _dot(dot: _Dot, chart: ChartLine, classes: str, radius: float) -> str:
    x, y, name, value = dot
    title = f"<title>{html(name)}: {html(chart.write(value))}</title>"
    return f'<circle class="{classes}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}">{title}</circle>'


def interval_svg(metric: MetricRow) -> str:
    """Return a small drawing of a change for a table cell: zero is in the middle, worse is left, better is right."""
    compared = metric.compared
    if compared is None or compared.low is None or compared.high is None:
        return ""
    middle = _SMALL_HEIGHT / 2

    def place(value: float) -> float:
        return 2 + (_SMALL_WIDTH - 4) * (min(1.0, max(-1.0, value / metric.reach)) + 1) / 2

    low, value, high = map(place, (compared.low, compared.difference, compared.high))
    ends = f"M{low:.1f} {middle - 4}v8M{high:.1f} {middle - 4}v8"
    size, title = f"0 0 {_SMALL_WIDTH} {_SMALL_HEIGHT}", f"change {metric.change_with_range}"
    return (
        f'<svg class="small" viewBox="{size}" role="img" aria-label="{html(title)}">'
        f'<path class="grid" d="M{place(0):.1f} 0v{_SMALL_HEIGHT}"/>'
        f'<path class="whisker" d="M{low:.1f} {middle}H{high:.1f}{ends}"/>'
        f'<circle class="dot" cx="{value:.1f}" cy="{middle}" r="4"/></svg>'
    )


def _histogram(chart: Histogram) -> str:
    left, top, width, height = _PLOT
    most = _count_axis(max(chart.counts, default=0))
    step = width / len(chart.counts)
    parts = [_grid(most)]
    for place, count in enumerate(chart.counts):
        if not count:
            continue
        tall = max(1.0, height * count / most)
        low, high = (chart.low + (chart.high - chart.low) * (place + side) / len(chart.counts) for side in (0, 1))
        last = chart.beyond and place == len(chart.counts) - 1
        span = (
            f"{_axis(low, chart.unit)} and more" if last else f"{_axis(low, chart.unit)} – {_axis(high, chart.unit)}"
        )
        parts.append(
            f'<rect class="bar" x="{left + place * step + 1:.1f}" y="{top + height - tall:.1f}"'
            f' width="{step - 2:.1f}" height="{tall:.1f}"><title>{html(span)}: {count:,}</title></rect>'
        )
    for tick in range(_TICKS + 1):
        share = tick / _TICKS
        text = _axis(chart.low + share * (chart.high - chart.low), chart.unit)
        if chart.beyond and tick == _TICKS:
            text = f"{text} +"
        anchor = "end" if tick == _TICKS else "middle"
        parts.append(_label(left + share * width, top + height + 16, text, anchor))
    parts += _marks(chart.marks, (left, left + width), top + height, chart.high - chart.low)
    return _drawing(chart.title, top + height + 24, parts)


def _grid(most: int) -> str:
    left, top, width, height = _PLOT
    lines = []
    for share in (0.0, 0.5, 1.0):
        y = top + height * (1 - share)
        lines.append(f'<path class="grid" d="M{left} {y:.1f}h{width}"/>')
        if share != 0.5 or most % 2 == 0:
            lines.append(_label(left - 6, y + 4, f"{most * share:,.0f}", "end"))
    return "".join(lines)


def _count_axis(most: int) -> int:
    if most <= 2:
        return max(most, 1)
    power = 10 ** (len(str(most)) - 1)
    return next(int(step * power) for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * power >= most)


def _marks(marks: Sequence[Mark], across: tuple[float, float], bottom: float, span: float) -> list[str]:
    parts = []
    left, right = across
    for place, (value, label) in enumerate(marks):
        x = left + (right - left) * min(1.0, max(0.0, value / span if span else 0.0))
        anchor = "end" if x > (left + right) / 2 else "start"
        base = _LINE * (place + 1) - 3
        parts.append(f'<path class="mark" d="M{x:.1f} {base - 8}V{bottom}"/>')
        parts.append(_label(x + (-4 if anchor == "end" else 4), base, label, anchor))
    return parts


def _axis(value: float, unit: Unit) -> str:
    if unit == "score":
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return f"{value / 1000:g} s" if value >= 1000 else f"{value:g} ms"


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html(text)}</text>'


def _drawing(title: str, height: float, parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{html(title)}">{"".join(parts)}</svg>'


def _stretches(dots: Sequence[_Dot | None]) -> Iterator[list[_Dot]]:
    stretch: list[_Dot] = []
    for dot in (*dots, None):
        if dot is not None:
            stretch.append(dot)
        elif stretch:
            yield stretch
            stretch = []


Source = Literal["run", "history", "baseline"]


@dataclass(frozen=True)
class RunPoint:
    """The figures of one run.

    Attributes:
        started_at: ISO 8601.
        source: this run, a file of the history, or the baseline in the results, which contains only
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


def earlier_runs(results: Results, base: Results | None = None) -> tuple[BaselineRun, ...]:
    """Return the earlier runs of the base, the oldest first; none of them is a pass of this run."""
    own = results.run.id
    # The baseline of the results, which later runs compare with, lacks the cases that changed.
    entries = {entry.run_id: entry for entry in (*results.baseline_runs, *(base.baseline_runs if base else ()))}
    # The further passes of a run have its id and a number.
    earlier = [entry for id_, entry in entries.items() if id_ != own and not id_.startswith(f"{own}.")]
    return tuple(sorted(earlier, key=lambda entry: entry.created_at))


def trend(results: Results, earlier: Sequence[EarlierRun], base: Results | None = None) -> tuple[RunPoint, ...]:
    """Return the run and earlier ones, the oldest first; a run in several sources counts once."""
    points = [_of_baseline_run(entry) for entry in earlier_runs(results, base)]
    points += [_of_summary(base.run, base.summary, "baseline")] if base else []
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


def _of_baseline_run(entry: BaselineRun) -> RunPoint:
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
        source="baseline",
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
_SOURCES = {"run": "this run", "history": "history", "baseline": "baseline"}


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
