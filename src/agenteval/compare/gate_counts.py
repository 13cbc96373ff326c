"""The numbers of cases that the gate decides on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from agenteval.results.case import CaseStatus
from agenteval.results.comparison import Comparison
from agenteval.results.model import Results

# Maximum number of names in a text.
_NAMED = 5


def of_cases(part: int, total: int) -> str:
    """Return ``2 of 3 cases``."""
    return f"{part:,} of {total:,} {'case' if total == 1 else 'cases'}"


def some(names: Collection[str]) -> str:
    """Return the first names as an enumeration."""
    shown = list(names)[:_NAMED]
    return ", ".join(shown) + (", …" if len(names) > _NAMED else "")


def compared(comparison: Comparison) -> int:
    """Return how many cases can have broken: those of both runs, unchanged, and not in quarantine."""
    return sum(
        case.change not in {"new", "removed", "changed"} and "quarantined" not in case.notes
        for case in comparison.cases
    )


@dataclass(frozen=True)
class Counts:
    """Numbers of cases, quarantined ones left out; ``quarantined`` counts those of them that did not pass."""

    cases: int
    passed: int
    failed: int
    errors: int
    skipped: int
    quarantined: int = 0

    @classmethod
    def of(cls, results: Results, out: Collection[str]) -> Counts:
        """Count the cases of a run.

        Args:
            out: ids of quarantined cases.
        """
        summary = results.summary
        left = Counter[CaseStatus](case.status for _, case in results.cases() if case.id in out) if out else Counter()
        return cls(
            cases=summary.cases - left.total(),
            passed=summary.passed - left["passed"],
            failed=summary.failed - left["failed"],
            errors=summary.errors - left["error"],
            skipped=summary.skipped - left["skipped"],
            quarantined=left["failed"] + left["error"],
        )

    @property
    def score(self) -> str:
        """``3 of 4 cases passed``."""
        return f"{of_cases(self.passed, self.cases)} passed"
