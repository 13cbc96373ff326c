"""Finds which failing cases fail the gate: with a baseline, the ones that are new, proven broken, or named."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from agenteval.compare.policy import BaseNames
from agenteval.results.case import CaseResult
from agenteval.results.comparison import ComparedCase, Comparison
from agenteval.results.model import Results
from agenteval.suite.model import Case

# Statuses that say whether a case passed.
_DECIDED = frozenset({"passed", "failed"})


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

    def names(self, case: CaseResult | Case) -> bool:
        """Return whether a case is required to pass."""
        texts = (case.name, case.id, *self.base_names.get(case.id, ()))
        return self.strict or any(fnmatchcase(text, pattern) for pattern in self.patterns for text in texts)


@dataclass(frozen=True)
class Failures:
    """The failing cases that count, by what they mean for the gate; each is a name.

    Attributes:
        not_repeated: these passed in the baseline and failed in this run, and were not run again.
        not_proven: the same, but they were run again, and the regression was not proven.
    """

    counting: tuple[str, ...] = ()
    broke: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    not_repeated: tuple[str, ...] = ()
    not_proven: tuple[str, ...] = ()


def failures_of(results: Results, required: Required, out: Collection[str]) -> Failures | None:
    """Return the failing cases of a run with a comparison; ``None`` without one: then each of them fails the gate.

    Args:
        required: the cases that fail the gate whenever they fail.
        out: ids of quarantined cases.
    """
    comparison = results.comparison
    if comparison is None:
        return None
    compared = {case.id: case for case in comparison.cases}
    found: dict[str, list[str]] = {}
    for _, case in results.cases():
        if case.status == "failed" and case.id not in out:
            other = compared.get(case.id)
            kind = _kind(case, other, comparison, required)
            found.setdefault(kind, []).append(case.name)
            if kind == "counting" and other is not None and other.change == "regressed":
                found.setdefault("broke", []).append(case.name)
    return Failures(**{kind: tuple(names) for kind, names in found.items()})


def _kind(case: CaseResult, compared: ComparedCase | None, comparison: Comparison, required: Required) -> str:
    """Return the attribute of `Failures` for a failing case."""
    if compared is None or compared.change in {"new", "changed"}:
        return "counting"
    if "accepted" in compared.notes:
        return "accepted"
    if compared.change == "regressed" or compared.status_before not in _DECIDED or required.names(case):
        return "counting"
    if compared.status_before == "passed" and _broke_with_a_mean(comparison, case.id):
        return "counting"
    if compared.status_before == "failed":
        return "known"
    return "not_proven" if was_repeated(comparison, case.id) else "not_repeated"


def _broke_with_a_mean(comparison: Comparison, case_id: str) -> bool:
    """Return whether a case always failed, and never failed on the base, in the runs that prove the drop of a mean.

    No case is proven on its own once a mean is.
    """
    sides = (
        (move.current_failures, move.baseline_failures)
        for metric in comparison.metrics
        if metric.gating and metric.verdict == "regressed"
        for move in metric.moved
        if move.id == case_id
    )
    return any(new and old and new.failed == new.of and not old.failed for new, old in sides)


def was_repeated(comparison: Comparison, case_id: str) -> bool:
    """Return whether a case that fails now ran again, or never looked worse than its earlier runs vary."""
    return comparison.stage is not None and all(
        proof.current.of for proof in comparison.proofs if proof.id == case_id
    )
