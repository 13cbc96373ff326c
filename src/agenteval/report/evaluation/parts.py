"""What an evaluation report is made of, in plain values: templates arrange and escape it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agenteval.report.html.svg import Chart

State = Literal["good", "bad", "neutral"]
AnswerStatus = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; numbers stand to the right."""

    title: str
    number: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts.

    Attributes:
        hidden: rows that are left out.
        states: what the first cell of each row says; empty where it is a cell like others.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    hidden: int = 0
    states: tuple[State, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """One number that leads."""

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
    """A section of the report; empty kinds of content are left out."""

    id: str
    title: str
    paragraphs: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    items: tuple[Item, ...] = ()
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.paragraphs or self.figures or self.items or self.tables or self.charts)


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One answer of the table that readers filter and sort; numbers are kept beside their texts."""

    name: str
    persona: str
    iteration: int
    score: float | None
    duration_ms: float | None
    status: AnswerStatus
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """The whole report.

    Attributes:
        success: whether the conditions hold; ``None`` where there are none to check.
        verdict: the same in words.
        created: date and time in UTC.
        answers: failed ones first, the worst of them first; ``hidden_answers`` counts those that are left out.
        interactive: whether readers can filter and sort.
    """

    title: str
    subtitle: str
    created: str
    goal: str | None
    success: bool | None
    verdict: str
    notices: tuple[str, ...]
    parts: tuple[Part, ...]
    answers: tuple[AnswerRow, ...] = ()
    hidden_answers: int = 0
    interactive: bool = False
