"""What charts show, in plain values; ``report/html/svg.py`` draws them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

_BINS = 20
_TAIL_SHARE = 0.95
_TAIL_FACTOR = 3
_ROOM = 1.5
_LEAST_SPAN = 0.05

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


@dataclass(frozen=True)
class Line:
    """One measure over runs.

    Attributes:
        values: of each run, the oldest first; ``None`` where it is not known.
        names: of the runs, as a tip shows them.
        write: how a value is written.
        top: the end of the axis, if it is fixed; it starts at 0.
    """

    title: str
    values: tuple[float | None, ...]
    names: tuple[str, ...]
    write: Callable[[float], str]
    top: float | None = None


@dataclass(frozen=True)
class Interval:
    """A difference and the range that it lies in, on an axis from ``-reach`` to ``reach``."""

    title: str
    value: float
    low: float
    high: float
    reach: float


Chart = Histogram | Bars | Line


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


def reach(values: Sequence[float]) -> float:
    """The axis that all these differences fit on."""
    return max([_LEAST_SPAN, *map(abs, values)])


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
