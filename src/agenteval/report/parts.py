"""Parts that reports are made of: sentences, tables, excerpts of lists; their settings, and limits of sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Generic, Literal, TypeVar

from agenteval.core.errors import AgentEvalError, InfrastructureError
from agenteval.core.records import dataclass, field

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
class ScoreLines:
    """Scores over runs.

    Attributes:
        names: of the runs, the oldest first; the last one is this run.
        lines: the name of each score, its value in each run, and whether it is proven to be worse.
    """

    title: str
    names: tuple[str, ...]
    lines: tuple[tuple[str, tuple[float | None, ...], bool], ...]


Chart = Histogram | ScoreLines

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


# Settings of reports.


GITHUB = "https://github.com"

REPOSITORY = re.compile(r"(?!\.)[\w.-]{1,100}/(?!\.)[\w.-]{1,100}", re.ASCII)
COMMIT = re.compile(r"[0-9a-f]{7,64}")


@dataclass(frozen=True)
class Site:
    """The server and the only repository that reports link to; without one, that of the results file."""

    server: str = GITHUB
    repository: str = ""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Site:
        """Return the site in the runner's variables; github.com without a runner."""
        server = (environment.get("GITHUB_SERVER_URL") or GITHUB).rstrip("/")
        return cls(server, environment.get("GITHUB_REPOSITORY", ""))


@dataclass(frozen=True)
class Presentation:
    """The settings of reports.

    Attributes:
        comment_template: the user's template of the comment, if there is one.
        summary_template: the user's template of the job summary, if there is one.
        template_texts: the content of the templates and of the files that they name, by path, as it was before user
            code ran; ``None`` to read the files when they are used.
        site: the target of links.
        reports: names of reporters of other packages.
        control: the deployment of the base commit's agent that the caller named; empty without one.
    """

    comment_template: Path | None = None
    summary_template: Path | None = None
    site: Site = field(default_factory=Site)
    reports: tuple[str, ...] = ()
    template_texts: Mapping[str, str] | None = None
    control: str = ""


@dataclass(frozen=True)
class ReportFile:
    """A file of a report, as one text or piece by piece; reports that are written later show its warnings."""

    name: str
    text: str | Iterable[str]
    warnings: tuple[str, ...] = ()


_PACKAGE = Path(__file__).parents[1]
_ALWAYS_THERE = Path("markdown", "comment.md.j2")


class UserTemplateError(AgentEvalError):
    """A user's template, possibly with a line, cannot be used, so the built-in one replaces it."""

    def __init__(self, place: Path | str, problem: str) -> None:
        super().__init__(f"{place}: {problem}; the built-in template is used instead")


def template_directory() -> Path:
    """Return the directory of the templates: in the installed package, or beside ``src`` in a checkout."""
    places = (_PACKAGE / "templates", _PACKAGE.parents[1] / "templates")
    for directory in places:
        if (directory / _ALWAYS_THERE).is_file():
            return directory
    tried = " or ".join(str(directory) for directory in places)
    raise InfrastructureError(f"report templates are missing: no {_ALWAYS_THERE} in {tried}; install agenteval again")


# Size limits: a report that is too long is rendered again with less detail, never cut.
#
# GitHub rejects a comment above 65,536 characters, and does not show a job summary above 1 MiB.


COMMENT_LIMIT = 65_000
SUMMARY_LIMIT = 1_000_000


class ReportTooLargeError(AgentEvalError):
    """A report does not fit even with the least detail: the limit was lowered, or the template is a user's."""


@dataclass(frozen=True)
class Detail:
    """The amount of detail in a report.

    Attributes:
        max_cases: cases of one section that are shown with questions and answers.
        max_asides: rows of the less important sections: known failures, skipped cases, metrics; 0 omits them.
        max_text: characters of one answer or reason.
        reduced: whether this is less than the full report.
    """

    max_cases: int
    max_rows: int
    max_asides: int
    max_text: int
    reduced: bool = True


#: The levels of a pull-request comment. First less important sections are omitted, then cases, then parts of answers;
#: the last level has only the verdict and the numbers.
COMMENT_LEVELS = (
    Detail(max_cases=25, max_rows=100, max_asides=100, max_text=1_500, reduced=False),
    Detail(max_cases=25, max_rows=30, max_asides=10, max_text=1_500),
    Detail(max_cases=25, max_rows=20, max_asides=0, max_text=1_500),
    Detail(max_cases=10, max_rows=20, max_asides=0, max_text=1_500),
    Detail(max_cases=5, max_rows=20, max_asides=0, max_text=1_500),
    Detail(max_cases=5, max_rows=20, max_asides=0, max_text=500),
    Detail(max_cases=3, max_rows=10, max_asides=0, max_text=200),
    Detail(max_cases=0, max_rows=10, max_asides=0, max_text=100),
    Detail(max_cases=0, max_rows=0, max_asides=0, max_text=100),
)

#: The levels of a job summary.
SUMMARY_LEVELS = (
    Detail(max_cases=100, max_rows=2_000, max_asides=2_000, max_text=4_000, reduced=False),
    Detail(max_cases=100, max_rows=500, max_asides=100, max_text=4_000),
    Detail(max_cases=50, max_rows=500, max_asides=0, max_text=4_000),
    Detail(max_cases=25, max_rows=200, max_asides=0, max_text=2_000),
    Detail(max_cases=10, max_rows=200, max_asides=0, max_text=1_000),
    Detail(max_cases=5, max_rows=100, max_asides=0, max_text=400),
    Detail(max_cases=0, max_rows=100, max_asides=0, max_text=200),
    Detail(max_cases=0, max_rows=0, max_asides=0, max_text=100),
)


def fit(
    render: Callable[[Detail], str],
    size: Callable[[str], int],
    limit: int,
    levels: tuple[Detail, ...] = COMMENT_LEVELS,
) -> str:
    """Render with the most detail whose ``size`` is within ``limit``.

    Raises:
        ReportTooLargeError: not even the last level fits.
    """
    for detail in levels:
        text = render(detail)
        if size(text) <= limit:
            return text
    raise ReportTooLargeError(f"the report does not fit into {limit:,} even with the least detail")


def characters(text: str) -> int:
    """Return the length of a text in UTF-16 units, which is the highest of all ways to count characters."""
    return len(text.encode("utf-16-le")) // 2


def utf8_bytes(text: str) -> int:
    """Return the size of a file with this text."""
    return len(text.encode())
