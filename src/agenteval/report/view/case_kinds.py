"""The kinds of cases in reports: broke, could not be run, removed, new and others."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Self

from agenteval.results.case import CaseResult
from agenteval.results.comparison import CaseNote, ComparedCase, ComparedMetric, Comparison
from agenteval.results.model import Results

Kind = Literal[
    "broke", "failed", "error", "removed", "fell", "maybe",
    "flaky", "known", "quarantined", "accepted", "changed", "skipped", "gone", "improved", "new",
]  # fmt: skip

NOT_PASSED: Final = frozenset({"failed", "error"})


@dataclass(frozen=True, slots=True)
class KindWords:
    """How reports show a kind.

    Attributes:
        icon: for Markdown.
        words: after the name or the number of its cases.
        attention: whether somebody has to look at it; other kinds are not held against the change.
    """

    icon: str
    words: str
    attention: bool = False


#: All kinds, the most important first. A case has the first one that fits.
KINDS: Final[Mapping[Kind, KindWords]] = {
    "broke": KindWords("❌", "broke", attention=True),
    "failed": KindWords("❌", "failed", attention=True),
    "error": KindWords("🔌", "could not be run", attention=True),
    "removed": KindWords("➖", "removed", attention=True),
    "fell": KindWords("📉", "fell", attention=True),
    "maybe": KindWords("🎲", "maybe chance", attention=True),
    "flaky": KindWords("🎲", "flaky"),
    "known": KindWords("⚪", "known failure"),
    "quarantined": KindWords("⚪", "in quarantine"),
    "accepted": KindWords("⚪", "accepted"),
    "changed": KindWords("✏️", "rules changed"),
    "skipped": KindWords("⚪", "skipped"),
    "gone": KindWords("➖", "removed, did not pass before"),
    "improved": KindWords("✅", "improved"),
    "new": KindWords("➕", "new"),
}


def fallen_metrics(comparison: Comparison | None) -> list[ComparedMetric]:
    """Return the metrics whose mean is proven to have fallen, and that can fail the gate."""
    metrics = comparison.metrics if comparison else []
    return [metric for metric in metrics if metric.gating and metric.verdict == "regressed" and metric.difference < 0]


@dataclass(frozen=True, slots=True)
class Kinds:
    """Finds the kind of each case of a run.

    Attributes:
        quarantined: ids of quarantined cases; ids that the comparison names may be missing.
        fallen: id of a case that moved as the mean of a metric fell → that metric.
    """

    quarantined: Collection[str] = frozenset()
    fallen: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, results: Results) -> Self:
        """Return what the kinds of a run's cases depend on."""
        rules = results.gate.rules if results.gate else None
        fallen: dict[str, str] = {}
        for metric in fallen_metrics(results.comparison):
            for move in metric.moved:
                if move.current < move.baseline:
                    fallen.setdefault(move.id, metric.id)
        return cls(frozenset(rules.quarantine if rules else ()), fallen)

    def kind(self, case: CaseResult, compared: ComparedCase | None) -> Kind | None:
        """Return the kind of a case; ``None`` if it passed as before.

        Args:
            case: the case in this run.
            compared: its comparison, if there is one.
        """
        notes = compared.notes if compared else []
        if case.status in NOT_PASSED and (excused := self._excused(case, notes)):
            return excused
        if compared is not None and compared.change == "regressed":
            return "broke"
        if case.status == "error":
            return "error"
        if case.id in self.fallen:
            return "fell"
        if "suspect" in notes:
            return "maybe"
        if case.status == "failed":
            return _failed(compared)
        return "skipped" if case.status == "skipped" else _passed(compared)

    def _excused(self, case: CaseResult, notes: Collection[CaseNote]) -> Kind | None:
        if "quarantined" in notes or case.id in self.quarantined:
            return "quarantined"
        return "accepted" if "accepted" in notes else None


def _passed(compared: ComparedCase | None) -> Kind | None:
    """Return the kind of a passed case; ``None`` if it passed as before."""
    match compared.change if compared else None:
        case "changed" | "improved" | "new" as kind:
            return kind
    return None


def _failed(compared: ComparedCase | None) -> Kind:
    """Return the kind of a failed case that is not proven to have broken."""
    if compared is None or compared.change in {"new", "changed"}:
        return "failed"
    if "flaky" in compared.notes:
        return "flaky"
    match compared.status_before:
        case "failed":
            return "known"
        case "passed":
            return "maybe"
    return "failed"


def kind_of_removed(compared: ComparedCase) -> Kind:
    """Return the kind of a case that only the baseline has."""
    return "removed" if compared.status_before == "passed" else "gone"
