"""Compares a run with its baseline by the configured policy.

The statistical policy has two steps. The first names the confirmation runs that a suspected regression needs. The
second decides with the confirmation runs that were made.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from agenteval.compare.pairing import Pairing, pair_cases
from agenteval.compare.policy import ComparePolicy
from agenteval.compare.resources import compare_resources
from agenteval.compare.simple_rules import naive_verdict
from agenteval.results.model import (
    BaselineInfo,
    CaseResult,
    ComparedCase,
    ComparedMetric,
    Comparison,
    Results,
    RunVerdict,
)

if TYPE_CHECKING:
    from agenteval.compare.samples import Confirmation, Sides
    from agenteval.compare.statistics.decision import FirstStage

# How many cases a note names.
_NAMED = 5


def _today() -> date:
    return datetime.now(UTC).date()


@dataclass(frozen=True)
class Comparer:
    """Compares one run with one baseline.

    Args:
        current: the current run.
        baseline: the run to compare with.
        known: ids of all cases in the suites of the current run, filtered-out ones included.
        policy: the comparison policy.
        today: the UTC date that decides which quarantine entries have ended.
        notes: what the reader of the baseline left out.
        distance: number of commits between the baseline's commit and the commit where its search began.
    """

    current: Results
    baseline: Results
    known: Collection[str]
    policy: ComparePolicy = field(default_factory=ComparePolicy)
    today: date = field(default_factory=_today)
    notes: tuple[str, ...] = ()
    distance: int | None = None

    @cached_property
    def first_stage(self) -> FirstStage | None:
        """The confirmation runs that suspected regressions need; ``None`` if a simple rule decides."""
        if self.policy.name != "statistics":
            return None
        from agenteval.compare.statistical import look

        return look(self._sides)

    def decide(self, confirmation: Confirmation | None = None) -> Comparison:
        """Decide with the confirmation runs that were made."""
        if self.first_stage is None:
            return self._by_simple_rule()
        from agenteval.compare.samples import Confirmation
        from agenteval.compare.statistical import conclude

        concluded = conclude(self._sides, self._pairing.cases, self.first_stage, confirmation or Confirmation())
        return self._comparison(
            concluded.verdict, concluded.metrics, concluded.cases, concluded.policy, concluded.notes
        )

    def _by_simple_rule(self) -> Comparison:
        verdict, reason, metrics = naive_verdict(self.current, self._pairing.compared, self._quarantined, self.policy)
        cases = [
            case.model_copy(update={"notes": ["quarantined"]}) if case.id in self._quarantined else case
            for case in self._pairing.cases
        ]
        details = {"name": self.policy.name, "tolerance": self.policy.parameters.tolerance, "reason": reason}
        return self._comparison(verdict, metrics, cases, details, [])

    @cached_property
    def _quarantined(self) -> frozenset[str]:
        cases = (case for _, case in self.current.cases())
        return frozenset(case.id for case in cases if self.policy.quarantined(case.id, case.name, self.today))

    @cached_property
    def _sides(self) -> Sides:
        from agenteval.compare.samples import Sides

        return Sides(self.current, self.baseline, self.policy, self._quarantined)

    @cached_property
    def _pairing(self) -> Pairing:
        return pair_cases(self.current, self.baseline, self.known)

    def _comparison(
        self,
        verdict: RunVerdict,
        metrics: list[ComparedMetric],
        cases: list[ComparedCase],
        policy: dict[str, Any],
        notes: list[str],
    ) -> Comparison:
        run = self.baseline.run
        counting = {case.id for case in self._pairing.compared} - self._quarantined
        resources = compare_resources(self.current, self.baseline, counting, self.policy)
        notes = [*self.notes, *notes, *_removed(self._pairing), *_without_scores(self.current, self.baseline)]
        return Comparison(
            baseline=BaselineInfo(
                commit=run.commit,
                ref=run.ref,
                run_id=run.id,
                created_at=run.started_at,
                distance=self.distance,
            ),
            verdict=verdict,
            metrics=metrics,
            cases=cases,
            policy={**policy, "resources": [item.model_dump() for item in resources], "notes": notes},
        )


def _without_scores(current: Results, baseline: Results) -> list[str]:
    """Name metrics that scored cases of the baseline and none of the current run, so that none vanishes unnoticed."""
    cases = {case.id: case for _, case in current.cases()}
    before = {name for _, case in baseline.cases() if case.id in cases for name in _scored(case)}
    gone = sorted(before.difference(name for case in cases.values() for name in _scored(case)))
    return [f"{name} scored cases of the baseline and has no score in this run" for name in gone]


def _scored(case: CaseResult) -> Iterator[str]:
    for iteration in case.iterations:
        for turn in iteration.turns:
            yield from (score.id for score in turn.scores if score.score is not None)


def _removed(pairing: Pairing) -> list[str]:
    """List removed cases that passed before, so that nobody deletes a case unnoticed."""
    gone = [case.name for case in pairing.cases if case.change == "removed" and case.status_before == "passed"]
    if not gone:
        return []
    what = "1 case that passed before is" if len(gone) == 1 else f"{len(gone)} cases that passed before are"
    return [f"{what} no longer in the suite: {', '.join(gone[:_NAMED])}{', …' if len(gone) > _NAMED else ''}"]
