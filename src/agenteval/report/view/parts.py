"""The elements of a report's sections in plain values: templates arrange and escape them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from agenteval.report.view.charts import Chart

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
        hidden: the number of omitted rows.
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
        lines: what follows the title.
    """

    title: str
    badge: str
    state: State
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A section of a report; empty elements are not shown.

    Attributes:
        id: unique in its report.
        paragraphs: texts.
        facts: labels and values.
        lines: a list of texts; ``hidden`` counts the omitted ones.
        warns: whether the part lists warnings.
    """

    id: str
    title: str
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
class Section(Generic[T]):
    """The first of many values; ``total`` counts all of them."""

    items: tuple[T, ...] = ()
    total: int = 0

    @classmethod
    def of(cls, things: Iterable[T], most: int) -> Section[T]:
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
        title: title of the table.
        columns: titles of the columns; a column whose title begins with ``#`` contains numbers.
        rows: the cells of each row.
        most: maximum number of rows.
        states: states of all rows, if they have any.
        folded: see :class:`Table`.
    """
    everything = tuple(rows)
    heads = tuple(Column(name.removeprefix("#"), name.startswith("#")) for name in columns)
    hidden = max(0, len(everything) - most)
    return Table(title, heads, everything[:most], hidden, tuple(states)[:most], folded)


def listed(id_: str, title: str, lines: Iterable[str], most: int, *, warns: bool = False) -> Part:
    """Make a part that lists a maximum number of texts."""
    shown = Section.of(lines, most)
    return Part(id_, title, lines=shown.items, hidden=shown.hidden, warns=warns)
