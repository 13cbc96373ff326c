"""Charts as inline SVG: what they show, and their drawing. Colours come from the page's style sheet."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agenteval.core.text.escape import html, one_line

WIDTH = 560
_BINS = 20
_PLOT = (44, 34, 504, 150)  # left, top, width, height; above it is room for the labels of two marks
_ROW = 26
_LINE = 14
_LABEL_WIDTH = 190
_LONGEST_LABEL = 26
_TAIL_SHARE = 0.95
_TAIL_FACTOR = 3
_ROOM = 1.5
_TICKS = 5

Unit = Literal["score", "ms"]


@dataclass(frozen=True, slots=True)
class Mark:
    """A line across a chart, at a value of its axis."""

    value: float
    label: str


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many values lie where.

    Attributes:
        low: start of the first bin.
        high: end of the last one.
        counts: of each bin, all equally wide.
        beyond: values above ``high``; they are counted in the last bin.
    """

    title: str
    unit: Unit
    low: float
    high: float
    counts: tuple[int, ...]
    beyond: int = 0
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar from 0 to ``value``, 0..1, with a whisker over ``span`` where there is one."""

    label: str
    value: float
    text: str
    span: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Bars:
    """Shares or scores side by side; ``marks`` are lines across all of them."""

    title: str
    bars: tuple[Bar, ...]
    marks: tuple[Mark, ...] = ()


Chart = Histogram | Bars


def score_histogram(title: str, scores: Sequence[float], threshold: float | None) -> Histogram:
    """Scores from 0 to 1, with the threshold marked where there is one."""
    counts = _counts(scores, 0.0, 1.0)
    marks = () if threshold is None else (Mark(threshold, f"threshold {threshold:g}"),)
    return Histogram(title, "score", 0.0, 1.0, counts, marks=marks)


def time_histogram(title: str, ordered: Sequence[float], marks: Sequence[Mark] = ()) -> Histogram:
    """Times in ms; a long tail goes into the last bin, so that the rest can be seen.

    Args:
        title: of the chart.
        ordered: the times, ascending, at least one.
        marks: those within the chart are shown.
    """
    longest = ordered[-1]
    most = ordered[math.ceil(_TAIL_SHARE * (len(ordered) - 1))]
    high = _rounded_up(_ROOM * most if longest > _TAIL_FACTOR * most else longest)
    beyond = len(ordered) - bisect_right(ordered, high)
    counts = _counts(ordered, 0.0, high)
    return Histogram(title, "ms", 0.0, high, counts, beyond, tuple(mark for mark in marks if mark.value <= high))


def svg(chart: Chart) -> str:
    """The drawing, an ``svg`` element; every label in it is escaped."""
    return _histogram(chart) if isinstance(chart, Histogram) else _bars(chart)


def _counts(values: Sequence[float], low: float, high: float) -> tuple[int, ...]:
    counts = [0] * _BINS
    width = (high - low) / _BINS
    # Of thousands of values, most are the same few.
    for value, times in Counter(values).items():
        # Without the hair's breadth 0.15 would fall into the bin below, and 1.0 beyond the last one.
        counts[min(_BINS - 1, max(0, int((min(value, high) - low) / width + 1e-9)))] += times
    return tuple(counts)


def _rounded_up(value: float) -> float:
    """The next round number, so that the ticks of an axis are round too."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= value * (1 - 1e-12))


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
        parts.append(label(left + share * width, top + height + 16, text, anchor))
    parts += _marks(chart.marks, (left, left + width), top + height, chart.high - chart.low)
    return drawing(chart.title, top + height + 24, parts)


def _bars(chart: Bars) -> str:
    left, width = _LABEL_WIDTH, WIDTH - _LABEL_WIDTH - 66
    top = 20 if chart.marks else 4
    bottom = top + _ROW * len(chart.bars)
    parts = []
    for place, bar in enumerate(chart.bars):
        y = top + place * _ROW
        value = min(1.0, max(0.0, bar.value))
        parts += [
            label(left - 8, y + 17, one_line(bar.label, _LONGEST_LABEL), "end", bar.label),
            f'<rect class="track" x="{left}" y="{y + 6}" width="{width}" height="14" rx="2"/>',
            f'<rect class="bar" x="{left}" y="{y + 6}" width="{width * value:.1f}" height="14" rx="2"/>',
            label(left + width + 6, y + 17, bar.text, "start"),
        ]
        if bar.span:
            low, high = (left + width * min(1.0, max(0.0, side)) for side in bar.span)
            parts.append(
                f'<path class="whisker" d="M{low:.1f} {y + 13}H{high:.1f}M{low:.1f} {y + 9}v8M{high:.1f} {y + 9}v8"/>'
            )
    parts += _marks(chart.marks, (left, left + width), bottom, 1.0)
    return drawing(chart.title, bottom + 4, parts)


def _grid(most: int) -> str:
    left, top, width, height = _PLOT
    lines = []
    for share in (0.0, 0.5, 1.0):
        y = top + height * (1 - share)
        lines.append(f'<path class="grid" d="M{left} {y:.1f}h{width}"/>')
        if share != 0.5 or most % 2 == 0:
            lines.append(label(left - 6, y + 4, f"{most * share:,.0f}", "end"))
    return "".join(lines)


def _count_axis(most: int) -> int:
    if most <= 2:
        return max(most, 1)
    power = 10 ** (len(str(most)) - 1)
    return next(int(step * power) for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * power >= most)


def _marks(marks: Sequence[Mark], across: tuple[float, float], bottom: float, span: float) -> list[str]:
    parts = []
    left, right = across
    for place, mark in enumerate(marks):
        x = left + (right - left) * min(1.0, max(0.0, mark.value / span if span else 0.0))
        anchor = "end" if x > (left + right) / 2 else "start"
        base = _LINE * (place + 1) - 3
        parts.append(f'<path class="mark" d="M{x:.1f} {base - 8}V{bottom}"/>')
        parts.append(label(x + (-4 if anchor == "end" else 4), base, mark.label, anchor))
    return parts


def _axis(value: float, unit: Unit) -> str:
    if unit == "score":
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return f"{value / 1000:g} s" if value >= 1000 else f"{value:g} ms"


def label(x: float, y: float, text: str, anchor: str, tip: str | None = None) -> str:
    """A text of a drawing; ``tip`` is what it says in full."""
    title = f"<title>{html(one_line(tip, 300))}</title>" if tip is not None and tip != text else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html(text)}{title}</text>'


def drawing(title: str, height: float, parts: Sequence[str]) -> str:
    """An ``svg`` element, as wide as all charts."""
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{html(title)}">{"".join(parts)}</svg>'
