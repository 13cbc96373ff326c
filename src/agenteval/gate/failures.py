"""The numbers of cases that the gate decides on, and which failing cases fail it: new, proven and named ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from fnmatch import fnmatchcase

from agenteval.core.records import dataclass, field
from agenteval.gate.values import BaseNames
from agenteval.results.case import CaseResult, CaseStatus
from agenteval.results.comparison import ComparedCase, Comparison
from agenteval.results.model import Results
from agenteval.suite.model import Case

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
        """Count the cases of a run."""
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


# Statuses of cases that were asked: the comparison judges them.
_ASKED = frozenset({"passed", "failed", "error"})


@dataclass(frozen=True)
class Required:
    """The cases that fail the gate whenever they fail, whatever the baseline says.

    Attributes:
        patterns: names or ids; ``*`` matches any text.
        base_names: further names of renamed cases, which the patterns know too.
    """

    strict: bool = False
    patterns: tuple[str, ...] = ()
    base_names: BaseNames = field(default_factory=dict)

    @property
    def texts(self) -> tuple[str, ...]:
        """The patterns, and the ids of the renamed cases that they know by an earlier name."""
        earlier = {id_ for id_, names in self.base_names.items() if any(map(self._matches, names))}
        return (*self.patterns, *sorted(earlier))

    def _matches(self, text: str) -> bool:
        return any(fnmatchcase(text, pattern) for pattern in self.patterns)

    def names(self, case: CaseResult | Case) -> bool:
        """Return whether a case is required to pass."""
        texts = (case.name, case.id, *self.base_names.get(case.id, ()))
        return self.strict or any(map(self._matches, texts))


@dataclass(frozen=True)
class Failures:
    """The failing cases that count, by what they mean for the gate; each is a name.

    Attributes:
        required: those of them that count only because they are named by `must_pass` or `strict`.
        judged: these did not fail in the baseline and failed here; the comparison alone judges them.
    """

    counting: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    broke: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    judged: tuple[str, ...] = ()


def failures_of(results: Results, required: Required, out: Collection[str]) -> Failures | None:
    """Return the failing cases of a run with a comparison; ``None`` without one: then each of them fails the gate."""
    comparison = results.comparison
    if comparison is None:
        return None
    compared = {case.id: case for case in comparison.cases}
    found: dict[str, list[str]] = {}
    for _, case in results.cases():
        if case.status == "failed" and case.id not in out:
            other = compared.get(case.id)
            kind = _kind(case, other, required)
            found.setdefault(kind, []).append(case.name)
            if kind == "required":
                found.setdefault("counting", []).append(case.name)
            if kind == "counting" and other is not None and other.change == "broke":
                found.setdefault("broke", []).append(case.name)
    return Failures(**{kind: tuple(names) for kind, names in found.items()})


def _kind(case: CaseResult, compared: ComparedCase | None, required: Required) -> str:
    if compared is None or compared.change in {"new", "changed"}:
        return "counting"
    if "accepted" in compared.notes:
        return "accepted"
    if compared.change == "broke" or compared.status_before not in _ASKED:
        return "counting"
    if required.names(case):
        return "required"
    return "known" if compared.status_before == "failed" else "judged"
