"""Parts that reports are made of: sentences, tables, charts."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

_BINS = 20
_TAIL_SHARE = 0.95
_TAIL_FACTOR = 3
_ROOM = 1.5
_LEAST_SPAN = 0.05
_MARGIN = 0.2

Unit = Literal["score", "ms"]


@dataclass(frozen=True, slots=True)
class Mark:
    """A line across a chart, at a value of its axis."""

    value: float
    label: str


@dataclass(frozen=True, slots=True)
class Histogram:
    """The distribution of values.

    Attributes:
        high: end of the last bin.
        counts: number of values in each bin; all bins have the same width.
        beyond: number of values above ``high``; the last bin includes them.
        before: the same for the baseline, whose values are of the same cases; empty without one.
    """

    title: str
    unit: Unit
    low: float
    high: float
    counts: tuple[int, ...]
    beyond: int = 0
    marks: tuple[Mark, ...] = ()
    before: tuple[int, ...] = ()


@dataclass(frozen=True)
class ChartLine:
    """One measure over runs.

    Attributes:
        values: value of each run, the oldest first; ``None`` if unknown.
        band: the range of the values that the last one is compared with, if there are any.
    """

    title: str
    values: tuple[float | None, ...]
    names: tuple[str, ...]
    write: Callable[[float], str]
    axis: tuple[float, float]
    band: tuple[float, float] | None = None


@dataclass(frozen=True)
class Interval:
    """A difference and its interval, on an axis from ``-reach`` to ``reach``."""

    title: str
    value: float
    low: float
    high: float
    reach: float


Chart = Histogram | ChartLine


def score_histogram(
    title: str, scores: Sequence[float], threshold: float | None, before: Sequence[float] = ()
) -> Histogram:
    """Return the distribution of scores from 0 to 1, with a mark at the threshold if there is one."""
    marks = () if threshold is None else (Mark(threshold, f"threshold {threshold:g}"),)
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
    return Histogram(title, "ms", 0.0, high, counts, beyond, tuple(mark for mark in marks if mark.value <= high))


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


def reach(values: Sequence[float]) -> float:
    """Return the reach of an axis that fits all these differences."""
    return max([_LEAST_SPAN, *map(abs, values)])


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


T = TypeVar("T")

State = Literal["good", "bad", "neutral"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; numbers are aligned to the right."""

    title: str
    number: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts.

    Attributes:
        states: states of the rows, shown with their first cell; empty for rows without states.
        folded: whether readers have to open the table, because it repeats the content of a chart.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    hidden: int = 0
    states: tuple[State, ...] = ()
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """One prominent number."""

    label: str
    value: str
    note: str = ""
    state: State = "neutral"


@dataclass(frozen=True, slots=True)
class Item:
    """An entry of a list: a recommendation, an example.

    Attributes:
        badge: a word in front: a priority, a score.
    """

    title: str
    badge: str
    state: State
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A section of a report; empty elements are not shown.

    Attributes:
        lines: a list of texts; ``hidden`` counts the omitted ones.
    """

    id: str = ""
    title: str = ""
    paragraphs: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    lines: tuple[str, ...] = ()
    hidden: int = 0
    figures: tuple[Figure, ...] = ()
    items: tuple[Item, ...] = ()
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    warns: bool = False

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (
            self.paragraphs or self.facts or self.lines or self.figures or self.items or self.tables or self.charts
        )


@dataclass(frozen=True, slots=True)
class Excerpt(Generic[T]):
    """The first of many values; ``total`` counts all of them."""

    items: tuple[T, ...] = ()
    total: int = 0

    @classmethod
    def of(cls, things: Iterable[T], most: int) -> Excerpt[T]:
        """Make a section with a maximum number of values."""
        everything = tuple(things)
        return cls(everything[:most], len(everything))

    @property
    def hidden(self) -> int:
        """The number of omitted values."""
        return self.total - len(self.items)


def table(
    title: str,
    columns: Iterable[str],
    rows: Iterable[tuple[str, ...]],
    most: int,
    states: Iterable[State] = (),
    *,
    folded: bool = False,
) -> Table:
    """Make a table with a maximum number of rows.

    Args:
        columns: titles of the columns; a column whose title begins with ``#`` contains numbers.
        folded: see :class:`Table`.
    """
    everything = tuple(rows)
    heads = tuple(Column(name.removeprefix("#"), name.startswith("#")) for name in columns)
    hidden = max(0, len(everything) - most)
    return Table(title, heads, everything[:most], hidden, tuple(states)[:most], folded)


def listed(id_: str, title: str, lines: Iterable[str], most: int, *, warns: bool = False) -> Part:
    """Make a part that lists a maximum number of texts."""
    shown = Excerpt.of(lines, most)
    return Part(id_, title, lines=shown.items, hidden=shown.hidden, warns=warns)
