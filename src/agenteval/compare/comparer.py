"""Compares a run with its baseline by the configured policy.

The statistics have two steps: the first run alone may raise a suspicion, and further runs prove or clear it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from agenteval.compare.concluded import Concluded
from agenteval.compare.integrity.accepted import Accepted
from agenteval.compare.integrity.integrity import Integrity, with_acceptances
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
        integrity: how suites and rules differ from those of the base commit, and what was accepted.
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
    integrity: Integrity = field(default_factory=Integrity)

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

        return Sides(self.current, self.baseline, self._policy, self._quarantined, self.unrelated)

    @property
    def _is_merged(self) -> bool:
        return is_merged(self.current.run, self.baseline.run)

    def _by_simple_rule(self) -> Comparison:
        verdict, reason, metrics = simple_rule_verdict(
            self.current, self._pairing.compared, self._quarantined, self._policy
        )
        cases = [
            case.model_copy(update={"notes": ["quarantined"]}) if case.id in self._quarantined else case
            for case in self._pairing.cases
        ]
        details = {"name": self.policy.name, "tolerance": self.policy.settings.tolerance, "reason": reason}
        return self._comparison(Concluded(verdict, [], metrics, cases, details, []))

    @cached_property
    def _quarantined(self) -> frozenset[str]:
        cases = [case for _, case in self.current.cases()]
        names = {case.id: case.name for _, case in self.baseline.cases()} | {case.id: case.name for case in cases}
        held = (case_id for case_id, name in names.items() if self.policy.quarantined(case_id, name, self.today))
        # An accepted change does not count, and its figures are shown all the same.
        return frozenset((*held, *self._accepted_cases))

    @cached_property
    def _accepted_cases(self) -> Mapping[str, Accepted]:
        return self.integrity.accepted_cases(self.current, self.baseline)

    @cached_property
    def _accepted_metrics(self) -> Mapping[str, Accepted]:
        means = {name: metric.mean for name, metric in self.current.summary.metrics.items()}
        return self.integrity.accepted_metrics(means, self.policy.settings.tolerance)

    @cached_property
    def _policy(self) -> ComparePolicy:
        """The policy, by which accepted means are only reported."""
        if not self._accepted_metrics:
            return self.policy
        return replace(self.policy, gating={**self.policy.gating, **dict.fromkeys(self._accepted_metrics, False)})

    @cached_property
    def _pairing(self) -> Pairing:
        return pair_cases(self.current, self.baseline, self.known, self.gone)

    def _not_run(self) -> Iterator[str]:
        """Yield the suites of the baseline that this run does not contain."""
        ran = {*self.gone, *(suite.path for suite in self.current.suites)}
        for suite in self.baseline.suites:
            if suite.path not in ran and suite.cases:
                yield f"{suite.path} is in the baseline and not in this run: {_cases(len(suite.cases))} not compared"

    def _acknowledged(self) -> Iterator[str]:
        """Yield who accepted what, and why."""
        names = {case.id: case.name for run in (self.baseline, self.current) for _, case in run.cases()}
        for case_id, entry in self._accepted_cases.items():
            yield f"{names.get(case_id, case_id)} ({entry.change}) was {_by(entry)}"
        for name, entry in self._accepted_metrics.items():
            yield f"the mean of {name} was {_by(entry)}"

    def _comparison(self, concluded: Concluded) -> Comparison:
        run, policy = self.baseline.run, self.policy
        counting = {case.id for case in self._pairing.compared} - self._quarantined
        resources = compare_resources(self.current, self.baseline, counting, policy)
        not_gating = {name for name, gates in policy.gating.items() if not gates}
        lost = [*_without_scores(self.current, self.baseline, not_gating)]
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
            cases=with_acceptances(concluded.cases, self._accepted_cases),
            **concluded.proof,
            policy={
                **concluded.details,
                "reason": "; ".join(reasons),
                "resources": [item.model_dump() for item in resources],
                "notes": [*self.notes, *concluded.notes, *lost, *self._not_run(), *self._acknowledged()],
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


def _by(entry: Accepted) -> str:
    return f"accepted{f' by {entry.author}' if entry.author else ''}: {entry.reason}"


def _cases(count: int) -> str:
    return "1 case is" if count == 1 else f"{count} cases are"


def _scored(case: CaseResult) -> Iterator[str]:
    return (score.id for score in case.scores if score.score is not None)
