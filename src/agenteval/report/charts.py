"""Charts: their data, their drawings as SVG, and the trend lines of this run and earlier ones."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Literal

from agenteval.core.escape import html, one_line
from agenteval.core.records import asdict, dataclass
from agenteval.report import words
from agenteval.report.metrics import MetricRow
from agenteval.report.parts import Chart, Histogram, Mark, Part, ScoreLines, Unit, table
from agenteval.report.words import moment, short_commit
from agenteval.results.comparison import BaselineRun
from agenteval.results.history import MOST_RUNS, EarlierRun
from agenteval.results.model import Results, Run, Summary
from agenteval.results.rollup import mean

_BINS = 20
_TAIL_SHARE = 0.95
_TAIL_FACTOR = 3
_ROOM = 1.5


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
_LEFT, _RIGHT, _TOP, _HEIGHT = 36, 268, 12, 200  # of the lines; their labels are to the right of them
_LINES_WIDTH = 420  # small, so that a phone shows readable labels
_APART = 0.7  # the distance of this run from the others, as a share of the distance between two of them
_SMALL_WIDTH, _SMALL_HEIGHT = 180, 20

_Dot = tuple[float, float, str, float]  # x, y, name and value


def svg(chart: Chart) -> str:
    """Return the drawing, an ``svg`` element; every label in it is escaped."""
    return _lines(chart) if isinstance(chart, ScoreLines) else _histogram(chart)


def _lines(chart: ScoreLines) -> str:
    ticks = _ticks([value for _, values, _ in chart.lines for value in values if value is not None])
    bottom = _TOP + _HEIGHT
    step = (_RIGHT - _LEFT) / (len(chart.names) - 1 + _APART)
    places = [_LEFT + place * step for place in range(len(chart.names) - 1)] + [_RIGHT]

    def height_of(value: float) -> float:
        return bottom - _HEIGHT * (value - ticks[0]) / (ticks[-1] - ticks[0])

    parts = []
    for tick in ticks:
        parts.append(f'<path class="grid" d="M{_LEFT} {height_of(tick):.1f}H{_RIGHT}"/>')
        parts.append(_label(_LEFT - 8, height_of(tick) + 4, f"{round(tick, 6):g}", "end"))
    parts.append(_label(_LEFT, bottom + 18, words.count(len(places) - 1, "earlier run"), "start"))
    parts.append(_label(_RIGHT, bottom + 18, "this run", "middle"))
    ends: list[tuple[float, str, str]] = []
    for title, values, is_worse in chart.lines:
        dots = [
            (x, height_of(value), name, value) if value is not None else None
            for x, value, name in zip(places, values, chart.names, strict=True)
        ]
        kind = " worse" if is_worse else ""
        for stretch in _stretches(dots[:-1]):
            path = "L".join(f"{x:.1f} {y:.1f}" for x, y, _, _ in stretch)
            parts.append(f'<path class="line{kind}" d="M{path}"/>')
            parts += (_dot(dot, title, f"dot{kind}", 3) for dot in stretch)
        if (last := dots[-1]) is None:
            continue
        if before := dots[-2]:
            path = f"M{before[0]:.1f} {before[1]:.1f}L{last[0]:.1f} {last[1]:.1f}"
            parts.append(f'<path class="step{kind}" d="{path}"/>')
        parts.append(_dot(last, title, f"dot now{kind}", 5))
        ends.append((last[1], f"{one_line(title, _LONGEST_NAME)} {last[3]:.2f}", kind))
    parts += _labels_apart(ends, _RIGHT + 12, bottom)
    return _drawing(chart.title, bottom + 26, parts, _LINES_WIDTH)


def _labels_apart(ends: list[tuple[float, str, str]], x: float, bottom: float) -> Iterator[str]:
    lowest = bottom - _LINE * (len(ends) - 1)
    above = -math.inf
    for y, text, kind in sorted(ends):
        above = max(above + _LINE, min(y, lowest))
        lowest += _LINE
        yield _label(x, above + 4, text, "start", kind)


def _ticks(values: Sequence[float]) -> list[float]:
    step = _rounded_up(max(max(values) - min(values), _LEAST_SPAN) / 4)
    first, last = math.floor(min(values) / step + 1e-9), math.ceil(max(values) / step - 1e-9)
    if last - first < 2:
        first = max(0, last - 2)
        last = first + 2
    return [number * step for number in range(first, last + 1)]


def _dot(dot: _Dot, title: str, classes: str, radius: float) -> str:
    x, y, name, value = dot
    told = f"<title>{html(title)}, {html(name)}: {value:.2f}</title>"
    return f'<circle class="{classes}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}">{told}</circle>'


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


def _label(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    classes = f' class="{kind.strip()}"' if kind else ""
    return f'<text{classes} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html(text)}</text>'


def _drawing(title: str, height: float, parts: Sequence[str], width: int = WIDTH) -> str:
    size = f'viewBox="0 0 {width} {height:.0f}"'
    return f'<svg {size} role="img" aria-label="{html(title)}">{"".join(parts)}</svg>'


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
_MOST_LINES = 8
_LONGEST_NAME = 18
_LONGEST_COLUMN = 60
_LEAST_SPAN = 0.04  # the smallest difference that fills the drawing
_SOURCES = {"run": "this run", "history": "history", "baseline": "baseline"}


def trend_part(points: Sequence[RunPoint], worse: Collection[str] = ()) -> Part:
    """Return the scores of this run and of earlier ones as a picture, and all figures as a table.

    Args:
        worse: the metrics that are proven to be worse.
    """
    if len(points) < 2:
        return Part("trends", "Trend")
    names = tuple(_name(point) for point in points)
    metrics = list(dict.fromkeys(name for point in reversed(points) for name in point.metrics or {}))[:_MOST_METRICS]
    scores: dict[str, _Value] = {"mean score": lambda point: point.score} if len(metrics) != 1 else {}
    scores |= {name: _of_metric(name) for name in metrics}
    others: list[tuple[str, _Value, Callable[[float], str]]] = [
        ("pass rate", lambda point: point.pass_rate, words.percent),
        ("cost", lambda point: point.cost_usd or None, words.money),
        ("duration", lambda point: point.duration_s, words.duration),
    ]
    columns = [*((name, value, words.number) for name, value in scores.items()), *others]
    columns = [column for column in columns if any(column[1](point) is not None for point in points)]
    heads = ("Run", "Commit", "From", "#Cases", *(f"#{one_line(name, _LONGEST_COLUMN)}" for name, _, _ in columns))
    rows = (
        (
            name,
            short_commit(point.commit),
            _SOURCES[point.source] + ("" if point.complete else ", interrupted"),
            _cases(point),
            *(words.NOTHING if (found := value(point)) is None else write(found) for _, value, write in columns),
        )
        for point, name in zip(points, names, strict=True)
    )
    measured = [(name, value) for name, value in scores.items() if value(points[-1]) is not None]
    lines = tuple((name, tuple(map(value, points)), name in worse) for name, value in measured[:_MOST_LINES])
    note = "The dashed part leads to this run. Metrics that are proven worse are red. The axis need not begin at 0."
    charts = (ScoreLines("Scores over the last runs", names, lines),) if lines else ()
    table_ = table("As a table", heads, rows, MOST_RUNS + 1, folded=True)
    return Part("trends", "Trend", paragraphs=(note,) if lines else (), charts=charts, tables=(table_,))


_Value = Callable[[RunPoint], float | None]


def _cases(point: RunPoint) -> str:
    is_part = point.suite_cases is not None and point.cases < point.suite_cases
    return f"{point.cases:,} of {point.suite_cases:,}" if is_part else f"{point.cases:,}"


def _of_metric(name: str) -> _Value:
    return lambda point: (point.metrics or {}).get(name)


def _name(point: RunPoint) -> str:
    return " ".join(part for part in (moment(point.started_at), short_commit(point.commit)[:7]) if part)
