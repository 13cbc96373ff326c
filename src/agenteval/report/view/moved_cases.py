"""The cases behind a proven change of a mean, as rows of texts. None of them is proven to have changed itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agenteval.report.view.parts import Section
from agenteval.report.view.view import count, number, signed
from agenteval.results.comparison import ComparedMetric, Comparison, FailedOf

_COMMIT = 7


@dataclass(frozen=True, slots=True)
class MovedRow:
    """One case: its mean and failed iterations on both sides, and the difference of the means."""

    name: str
    before: str
    after: str
    change: str


@dataclass(frozen=True, slots=True)
class MovedCases:
    """The cases that moved as the mean of a metric did, those with the largest share of the change first.

    Attributes:
        before: what the change was compared with, as the title of a column.
    """

    title: str
    before: str
    rows: Section[MovedRow]


def moved_cases(comparison: Comparison | None, most: int) -> tuple[MovedCases, ...]:
    """Return the lists of all metrics whose mean is proven to have changed.

    Args:
        comparison: the comparison of the run, if there is one.
        most: maximum number of rows in each list; 0 omits the lists.
    """
    return tuple(_lists(comparison, most)) if comparison and most else ()


def _lists(comparison: Comparison, most: int) -> Iterator[MovedCases]:
    names = {case.id: case.name for case in comparison.cases}
    for metric in comparison.metrics:
        if metric.moved:
            before, where = _compared_with(comparison, metric)
            lower = "lower" if metric.difference < 0 else "higher"
            rows = (
                MovedRow(
                    name=names.get(case.id, case.id),
                    before=_side(case.baseline, case.baseline_failures),
                    after=_side(case.current, case.current_failures),
                    change=signed(case.current - case.baseline),
                )
                for case in metric.moved
            )
            title = f"{count(len(metric.moved), 'case')} {lower} in {metric.id} {where}"
            yield MovedCases(title, before, Section.of(rows, most))


def _compared_with(comparison: Comparison, metric: ComparedMetric) -> tuple[str, str]:
    """Return the title of the column of the other side, and where the cases moved."""
    if not metric.runs_a_side or comparison.stage == "files":
        return "Earlier runs", "than in the earlier runs"
    if not comparison.control:
        return "Base", "side by side with the base"
    base = comparison.control[:_COMMIT]
    return base, f"side by side with {base}"


def _side(mean: float, failures: FailedOf | None) -> str:
    counted = f", failed {failures.failed} of {failures.of}" if failures else ""
    return f"{number(mean)}{counted}"
