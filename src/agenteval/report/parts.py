"""Parts that reports are made of: sentences, tables, excerpts of lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, Literal, TypeVar

from agenteval.core.records import dataclass

Unit = Literal["score", "ms"]


#: A line across a chart: a value of its axis, and a label.
Mark = tuple[float, str]


@dataclass(frozen=True)
class Histogram:
    """The distribution of values.

    Attributes:
        high: end of the last bin.
        counts: number of values in each bin; all bins have the same width.
        beyond: number of values above ``high``; the last bin includes them.
    """

    title: str
    unit: Unit
    low: float
    high: float
    counts: tuple[int, ...]
    beyond: int = 0
    marks: tuple[Mark, ...] = ()


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


Chart = Histogram | ChartLine

T = TypeVar("T")

State = Literal["good", "bad", "neutral"]


@dataclass(frozen=True)
class Table:
    """Rows of texts.

    Attributes:
        columns: the title of each column, and whether it contains numbers, which are aligned to the right.
        states: states of the rows, shown with their first cell; empty for rows without states.
        folded: whether readers have to open the table, because it repeats the content of a chart.
    """

    title: str
    columns: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[str, ...], ...]
    hidden: int = 0
    states: tuple[State, ...] = ()
    folded: bool = False


@dataclass(frozen=True)
class Figure:
    """One prominent number; or an entry of a list, such as an example with its score, and lines below it."""

    label: str
    value: str
    note: str = ""
    state: State = "neutral"
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
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
    items: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    warns: bool = False

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (
            self.paragraphs or self.facts or self.lines or self.figures or self.items or self.tables or self.charts
        )


@dataclass(frozen=True)
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
    heads = tuple((name.removeprefix("#"), name.startswith("#")) for name in columns)
    hidden = max(0, len(everything) - most)
    return Table(title, heads, everything[:most], hidden, tuple(states)[:most], folded)


def listed(id_: str, title: str, lines: Iterable[str], most: int, *, warns: bool = False) -> Part:
    """Make a part that lists a maximum number of texts."""
    shown = Excerpt.of(lines, most)
    return Part(id_, title, lines=shown.items, hidden=shown.hidden, warns=warns)
