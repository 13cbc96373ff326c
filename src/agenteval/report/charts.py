"""Charts: their data, and their drawings as SVG."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence

from agenteval.core.escape import html
from agenteval.report.metrics import MetricRow
from agenteval.report.parts import Chart, ChartLine, Histogram, Mark, Unit

_BINS = 20
_TAIL_SHARE = 0.95
_TAIL_FACTOR = 3
_ROOM = 1.5
_LEAST_SPAN = 0.05
_MARGIN = 0.2


def score_histogram(
    title: str, scores: Sequence[float], threshold: float | None, before: Sequence[float] = ()
) -> Histogram:
    """Return the distribution of scores from 0 to 1, with a mark at the threshold if there is one."""
    marks = () if threshold is None else ((threshold, f"threshold {threshold:.2f}"),)
    earlier = _counts(before, 0.0, 1.0) if before else ()
    return Histogram(title, "score", 0.0, 1.0, _counts(scores, 0.0, 1.0), marks=marks, before=earlier)


def time_histogram(title: str, ordered: Sequence[float], marks: Sequence[Mark] = ()) -> Histogram:
    """Return the distribution of times in ms; the last bin contains the long tail, so that the rest is visible.

    Args:
        ordered: the times, ascending, at least one.
        marks: marks; only those within the chart are shown.
    """
    longest = ordered[-1]
    most = ordered[math.ceil(_TAIL_SHARE * (len(ordered) - 1))]
    high = _rounded_up(_ROOM * most if longest > _TAIL_FACTOR * most else longest)
    beyond = len(ordered) - bisect_right(ordered, high)
    counts = _counts(ordered, 0.0, high)
    return Histogram(title, "ms", 0.0, high, counts, beyond, tuple(mark for mark in marks if mark[0] <= high))


def axis_around(values: Sequence[float], least_span: float, most: float = math.inf) -> tuple[float, float]:
    """Return the ends of an axis with some room around the values.

    Args:
        least_span: the smallest distance of the ends.
        most: the largest possible value; the smallest is 0.
    """
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
    """Return the next round number, so that the ticks of an axis are round."""
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
    most = _count_axis(max((*chart.counts, *chart.before), default=0))
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
    if chart.before:
        parts.append(_outline(chart.before, most))
    for tick in range(_TICKS + 1):
        share = tick / _TICKS
        text = _axis(chart.low + share * (chart.high - chart.low), chart.unit)
        if chart.beyond and tick == _TICKS:
            text = f"{text} +"
        anchor = "end" if tick == _TICKS else "middle"
        parts.append(_label(left + share * width, top + height + 16, text, anchor))
    parts += _marks(chart.marks, (left, left + width), top + height, chart.high - chart.low)
    return _drawing(chart.title, top + height + 24, parts)


def _outline(counts: Sequence[int], most: int) -> str:
    """Return the baseline's distribution as a line over the bars."""
    left, top, width, height = _PLOT
    step = width / len(counts)
    steps = "".join(
        f"V{top + height * (1 - count / most):.1f}H{left + (place + 1) * step:.1f}"
        for place, count in enumerate(counts)
    )
    return f'<path class="before" d="M{left} {top + height}{steps}V{top + height}"/>'


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
    """Return an ``svg`` element with the width of all charts."""
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{html(title)}">{"".join(parts)}</svg>'


def _stretches(dots: Sequence[_Dot | None]) -> Iterator[list[_Dot]]:
    stretch: list[_Dot] = []
    for dot in (*dots, None):
        if dot is not None:
            stretch.append(dot)
        elif stretch:
            yield stretch
            stretch = []
