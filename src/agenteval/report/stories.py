"""Cases in full: the first of each cause, with the conversations of both runs, and the metrics of every case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import quote

from agenteval.core.records import dataclass
from agenteval.report import words
from agenteval.report.cases import KINDS, CaseMetricRow, case_metrics, distinct_iterations
from agenteval.report.causes import CaseChange, Cause
from agenteval.report.parts import Excerpt
from agenteval.results.case import CaseResult, IterationResult
from agenteval.results.comparison import ComparedCase
from agenteval.results.masking import shortened_note
from agenteval.results.model import Results

if TYPE_CHECKING:
    from agenteval.report.diff import DiffLine

# Cases with the same cause that are shown in full.
MOST_ALIKE = 3
_MOST_CASES = 2_000
_MOST_LIKE = 5
_MOST_METRICS = 6
_SEEN = 0.005
_LABELS = {"response": "answer", "input": "question", "ground_truth": "expected answer"}


@dataclass(frozen=True)
class Story:
    """A case in full, with its comparison.

    Attributes:
        found: its entry in its cause.
        compared: ``None`` without a baseline.
        link: address of its line; empty if unknown.
        like: names and addresses of the next cases with the same cause; ``others`` counts all of them.
    """

    found: CaseChange
    case: CaseResult
    compared: ComparedCase | None
    link: str
    others: int = 0
    like: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """Its name."""
        return self.found.name

    @property
    def icon(self) -> str:
        """The icon of its kind."""
        return KINDS[self.found.kind].icon

    @property
    def where(self) -> str:
        """Its place: ``path:line``."""
        return f"{self.found.path}:{self.found.line}" if self.found.line else self.found.path

    @property
    def has_both(self) -> bool:
        """Whether the answers of both runs are known."""
        return self.compared is not None and bool(self.compared.answers)

    @property
    def tells(self) -> bool:
        """Whether it shows more than its row: an error alone does not, nor a case that passed."""
        if self.found.kind == "fell":
            return self.has_both
        iteration = self.case.telling_iteration
        return iteration is not None and (self.found.kind != "error" or len(iteration.turns) > 1)

    @property
    def is_changed(self) -> bool:
        """Whether an earlier answer is known, so that both can stand side by side."""
        return self.compared is not None and any(answer.before is not None for answer in self.compared.answers)

    @property
    def scores(self) -> str:
        """``f1_score 0.98 → 0.47; helpful 0.90 → 0.20``."""
        moved = [
            f"{metric.id} {' → '.join(words.distinct(metric.before, metric.after))}"
            for metric in (self.compared.metrics if self.compared else ())
            if metric.before is not None and metric.after is not None and abs(metric.before - metric.after) > _SEEN
        ]
        more = f"; and {len(moved) - _MOST_METRICS:,} more" if len(moved) > _MOST_METRICS else ""
        return f"{'; '.join(moved[:_MOST_METRICS])}{more}"

    @property
    def iterations(self) -> tuple[tuple[IterationResult, str], ...]:
        """Its iterations; those that are alike are one, with which they are in words."""
        return tuple(distinct_iterations(self.case))

    @property
    def note(self) -> str:
        """How many of its iterations failed."""
        iterations = self.iterations
        return iterations[0][1] if len(iterations) == 1 else words.iterations_note(self.case)

    @property
    def told(self) -> int:
        """The number of the iteration that represents it."""
        iteration = self.case.telling_iteration
        return iteration.index if iteration else 0

    @property
    def shortened(self) -> tuple[str, ...]:
        """Size and hash of each value of which the results contain only the beginning."""
        return tuple(
            f"{_LABELS.get(name, name)}: {shortened_note(whole)}"
            for iteration, _ in self.iterations
            for turn in iteration.turns
            for name, whole in turn.shortened.items()
        )

    def timeline(self, limit: int) -> list[DiffLine]:
        """Return the conversations of both runs as lines, each text of at most ``limit`` characters."""
        # Imported here, because most runs have nothing to show in full.
        from agenteval.report.diff import timeline

        return timeline(self.case, self.compared, self.found.wrong.turn if self.found.wrong else None, limit)


@dataclass(frozen=True)
class CaseRow:
    """A case with the result of each metric."""

    status: str
    name: str
    score: float | None
    metrics: tuple[CaseMetricRow, ...]
    why: str = ""


def source_link(source: str, path: str, line: int | None) -> str:
    """Return the address of a line of a suite's file in the evaluated commit; empty if it is unknown."""
    pure = PurePosixPath(path)
    if not source or not pure.parts or pure.is_absolute() or ".." in pure.parts:
        return ""
    # Paths come from results files and may contain lone surrogates, which cannot be encoded.
    written = quote(pure.as_posix(), safe="/", errors="replace")
    return f"{source}{written}" + (f"#L{line}" if line and line > 0 else "")


def first_stories(results: Results, causes: Sequence[Cause], source: str) -> Mapping[str, Story]:
    """Return the first cases of each cause in full; of a mean that fell, also the first case that went wrong."""
    chosen: dict[str, tuple[Cause, CaseChange]] = {}
    for cause in causes:
        for found in (*cause.cases[:MOST_ALIKE], *_first_wrong(cause)):
            # Ids of results that somebody else wrote may stand twice.
            chosen.setdefault(found.id, (cause, found))
    if not chosen:
        return {}
    located = {case.id: case for _, case in results.cases() if case.id in chosen}
    compared = {case.id: case for case in results.comparison.cases} if results.comparison else {}
    return {
        id_: Story(
            found=found,
            case=located[id_],
            compared=compared.get(id_),
            link=source_link(source, found.path, found.line),
            others=len(cause.cases) - 1,
            like=tuple(
                (each.name, source_link(source, each.path, each.line)) for each in cause.cases[1 : 1 + _MOST_LIKE]
            ),
        )
        for id_, (cause, found) in chosen.items()
        if id_ in located
    }


def _first_wrong(cause: Cause) -> Iterator[CaseChange]:
    if cause.kind == "fell":
        yield from [found for found in cause.cases if found.wrong is not None][:1]


def case_rows(results: Results) -> Excerpt[CaseRow]:
    """Return the cases in suite order; if there are too many, passed cases are omitted first."""
    cases = [case for _, case in results.cases()]
    if len(cases) > _MOST_CASES:
        cases.sort(key=lambda case: case.status == "passed")
    rows = (
        CaseRow(
            case.status, case.name, case.score, case_metrics(case), "" if case.status == "passed" else words.why(case)
        )
        for case in cases[:_MOST_CASES]
    )
    # Of a large run, not all cases are in memory.
    return Excerpt(tuple(rows), results.summary.cases)
