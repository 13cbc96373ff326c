"""Compares a run with its baseline by the configured policy.

The statistics have two steps: the first run alone may raise a suspicion, and further runs prove or clear it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from agenteval.compare.concluded import Concluded
from agenteval.compare.pairing import Pairing, pair_cases
from agenteval.compare.policy import ComparePolicy
from agenteval.compare.regression.model import Burden
from agenteval.compare.resources import compare_resources
from agenteval.compare.simple_rules import simple_rule_verdict
from agenteval.compare.unpaired import is_merged, unpaired
from agenteval.results.case import CaseResult
from agenteval.results.comparison import BaselineInfo, Comparison
from agenteval.results.model import Results

if TYPE_CHECKING:
    from agenteval.compare.driving import Answering
    from agenteval.compare.sides import Sides
    from agenteval.compare.statistical import Decided

# Maximum number of cases in a note.
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
        gone: paths of the baseline's suites that do not exist any more; their cases are removed.
        distance: number of commits between the baseline's commit and the commit where its search began.
        burden: what earlier attempts of the same change were proven to have lost.
        unrelated: commits whose runs do not count, because they are not ancestors of the control.
    """

    current: Results
    baseline: Results
    known: Collection[str]
    policy: ComparePolicy = field(default_factory=ComparePolicy)
    today: date = field(default_factory=_today)
    notes: tuple[str, ...] = ()
    gone: frozenset[str] = frozenset()
    distance: int | None = None
    unrelated: frozenset[str] = frozenset()
    burden: Burden = field(default_factory=Burden)

    @cached_property
    def needs_runs(self) -> bool:
        """Whether something has to run again before the statistics can decide."""
        if self.policy.name != "statistics":
            return False
        from agenteval.compare.driving import needs_runs

        return needs_runs(self.sides.evidence, self.policy, is_merged=self._is_merged, burden=self.burden)

    def decide(self) -> Comparison:
        """Decide without running anything again; a suspicion is unproven."""
        return self._by_simple_rule() if self.screened is None else self.concluded(self.screened)

    @cached_property
    def screened(self) -> Decided | None:
        """The decision of the statistics without running anything again; ``None`` for a simple rule."""
        if self.policy.name != "statistics":
            return None
        from agenteval.compare.driving import screened

        return screened(self.sides, self.burden)

    def prove(self, answer: Answering) -> Decided:
        """Decide with the runs that the statistics ask for.

        Args:
            answer: makes the runs of a request.
        """
        from agenteval.compare.driving import proven

        return proven(self.sides.evidence, self.policy, answer, is_merged=self._is_merged, burden=self.burden)

    def concluded(self, decided: Decided) -> Comparison:
        """Return the comparison with a decision of the statistics."""
        from agenteval.compare.statistical import conclude

        return self._comparison(conclude(self.sides, self._pairing.cases, decided))

    @cached_property
    def sides(self) -> Sides:
        """What the statistics compare."""
        from agenteval.compare.sides import Sides

        return Sides(self.current, self.baseline, self.policy, self._quarantined, self.unrelated)

    @property
    def _is_merged(self) -> bool:
        return is_merged(self.current.run, self.baseline.run)

    def _by_simple_rule(self) -> Comparison:
        verdict, reason, metrics = simple_rule_verdict(
            self.current, self._pairing.compared, self._quarantined, self.policy
        )
        cases = [
            case.model_copy(update={"notes": ["quarantined"]}) if case.id in self._quarantined else case
            for case in self._pairing.cases
        ]
        details = {"name": self.policy.name, "tolerance": self.policy.settings.tolerance, "reason": reason}
        return self._comparison(Concluded(verdict, [], metrics, cases, details, []))

    @cached_property
    def _quarantined(self) -> frozenset[str]:
        cases = (case for _, case in self.current.cases())
        return frozenset(case.id for case in cases if self.policy.quarantined(case.id, case.name, self.today))

    @cached_property
    def _pairing(self) -> Pairing:
        return pair_cases(self.current, self.baseline, self.known, self.gone)

    def _not_run(self) -> Iterator[str]:
        """Yield the suites of the baseline that this run does not contain."""
        ran = {*self.gone, *(suite.path for suite in self.current.suites)}
        for suite in self.baseline.suites:
            if suite.path not in ran and suite.cases:
                yield f"{suite.path} is in the baseline and not in this run: {_cases(len(suite.cases))} not compared"

    def _comparison(self, concluded: Concluded) -> Comparison:
        run, policy = self.baseline.run, self.policy
        counting = {case.id for case in self._pairing.compared} - self._quarantined
        resources = compare_resources(self.current, self.baseline, counting, policy)
        not_gating = {name for name, gates in policy.gating.items() if not gates}
        lost = [*_removed(self._pairing), *_without_scores(self.current, self.baseline, not_gating)]
        withdrawn = unpaired(
            self.current,
            self.baseline,
            self._pairing,
            self._quarantined,
            not_gating,
            failures_count=policy.name == "statistics",
        )
        unproven = [*withdrawn, *concluded.unproven]
        reasons = [*(item.text for item in withdrawn), concluded.details["reason"]]
        return Comparison(
            baseline=BaselineInfo(
                commit=run.commit,
                ref=run.ref,
                run_id=run.id,
                created_at=run.started_at,
                distance=self.distance,
            ),
            verdict="unproven" if unproven and concluded.verdict != "regressed" else concluded.verdict,
            unproven=unproven,
            metrics=concluded.metrics,
            cases=concluded.cases,
            **concluded.proof,
            policy={
                **concluded.details,
                "reason": "; ".join(reasons),
                "resources": [item.model_dump() for item in resources],
                "notes": [*self.notes, *concluded.notes, *lost, *self._not_run()],
            },
        )


def _without_scores(current: Results, baseline: Results, not_gating: Collection[str]) -> list[str]:
    """List metrics that are only reported, scored cases in the baseline, and score none in the current run."""
    cases = {case.id: case for _, case in current.cases()}
    summaries = baseline.summary.metrics
    deciding = {name for name, metric in summaries.items() if metric.pass_rate is not None} - set(not_gating)
    before = {name for _, case in baseline.cases() if case.id in cases for name in _scored(case)} - deciding
    gone = sorted(before.difference(name for case in cases.values() for name in _scored(case)))
    return [f"{name} scored cases of the baseline and has no score in this run" for name in gone]


def _cases(count: int) -> str:
    return "1 case is" if count == 1 else f"{count} cases are"


def _scored(case: CaseResult) -> Iterator[str]:
    return (score.id for score in case.scores if score.score is not None)


def _removed(pairing: Pairing) -> list[str]:
    """List removed cases that passed in the baseline, so that no passing case disappears unnoticed."""
    gone = [case.name for case in pairing.cases if case.change == "removed" and case.status_before == "passed"]
    if not gone:
        return []
    what = "1 case that passed before is" if len(gone) == 1 else f"{len(gone)} cases that passed before are"
    return [f"{what} no longer in the suite: {', '.join(gone[:_NAMED])}{', …' if len(gone) > _NAMED else ''}"]
