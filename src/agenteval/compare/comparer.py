"""Compares a run with its baseline by the configured policy.

The statistics have two steps: the first run alone may raise a suspicion, and further runs prove or clear it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from agenteval.compare.concluded import Concluded
from agenteval.compare.epoch import Watch, epoch_after, is_long_look_due
from agenteval.compare.integrity.accepted import Accepted
from agenteval.compare.integrity.integrity import Integrity, unproven_changes, with_acceptances
from agenteval.compare.made_with import declared_change
from agenteval.compare.paired_runs import PairedRuns
from agenteval.compare.pairing import Pairing, pair_cases
from agenteval.compare.phrases import some
from agenteval.compare.policy import ComparePolicy
from agenteval.compare.regression.model import Burden
from agenteval.compare.requested import not_provable
from agenteval.compare.rescored import Rescored
from agenteval.compare.resources import compare_resources
from agenteval.compare.simple_rules import simple_rule_verdict
from agenteval.compare.unpaired import continues_branch, unpaired
from agenteval.results.case import CaseResult
from agenteval.results.comparison import BaselineInfo, Comparison, PoolEntry
from agenteval.results.epoch import Epoch, EpochBegin
from agenteval.results.model import Results
from agenteval.results.verdict import Unproven

if TYPE_CHECKING:
    from agenteval.compare.driving import Answering, Deciding
    from agenteval.compare.sides import Sides
    from agenteval.compare.statistical import Decided

# Commits that a report lists.
_MOST_BETWEEN = 20


def _today() -> date:
    return datetime.now(UTC).date()


@dataclass(frozen=True)
class Comparer:
    """Compares one run with one baseline.

    Args:
        known: ids of all cases in the suites of the current run, filtered-out ones included.
        today: the UTC date that decides which quarantine entries have ended.
        gone: paths of the baseline's suites that do not exist any more; their cases are removed.
        distance: number of commits between the baseline's commit and the commit where its search began.
        burden: what earlier attempts of the same change were proven to have lost.
        unrelated: commits whose runs do not count, because they are not ancestors of the control.
        integrity: how suites and rules differ from those of the base commit, and what was accepted.
        parts: the runs that the current run was merged from, if they are runs of the same cases.
        rescored: what the baseline was before metrics scored its stored answers again; ``None`` if none did.
    """

    current: Results
    baseline: Results
    known: Collection[str]
    policy: ComparePolicy = field(default_factory=ComparePolicy)
    today: date = field(default_factory=_today)
    notes: tuple[str, ...] = ()
    gone: frozenset[str] = frozenset()
    distance: int | None = None
    between: Sequence[str] = ()
    unrelated: frozenset[str] = frozenset()
    burden: Burden = field(default_factory=Burden)
    integrity: Integrity = field(default_factory=Integrity)
    parts: Sequence[PoolEntry] = ()
    rescored: Rescored | None = None

    @property
    def needs_runs(self) -> bool:
        """Whether something has to run again before the statistics can decide."""
        return self._is_statistical and self._deciding.needs_runs

    def decide(self) -> Comparison:
        """Decide without running anything again; a suspicion is unproven."""
        return self._by_simple_rule() if self.screened is None else self.concluded(self.screened)

    @property
    def screened(self) -> Decided | None:
        """The decision of the statistics without running anything again; ``None`` for a simple rule."""
        return self._deciding.screened if self._is_statistical else None

    def prove(self, answer: Answering) -> Decided:
        """Decide with the runs that the statistics ask for."""
        return self._deciding.proven(answer)

    def concluded(self, decided: Decided) -> Comparison:
        """Return the comparison with a decision of the statistics."""
        from agenteval.compare.statistical import conclude

        return self._comparison(conclude(self.sides, self._pairing.cases, decided))

    @cached_property
    def sides(self) -> Sides:
        """What the statistics compare."""
        from agenteval.compare.sides import Sides

        return Sides(self.current, self.baseline, self._policy, self._quarantined, self.unrelated, self.parts)

    @cached_property
    def _deciding(self) -> Deciding:
        # Imported here: simple rules need no statistics.
        from agenteval.compare.driving import Deciding

        return Deciding(self.sides, self.is_of_branch or bool(self._policy.asked_by), self.burden)

    @property
    def _is_statistical(self) -> bool:
        return self.policy.name == "statistics"

    @property
    def is_of_branch(self) -> bool:
        """Whether the run is of the branch of its baseline, where improvements and long looks are proven too."""
        return continues_branch(self.current.run, self.baseline.run)

    def epoch(self, comparison: Comparison, entries: Sequence[PoolEntry]) -> Epoch:
        """Return the epoch of the base branch after this run.

        Args:
            entries: the run's entry in its pool, and those of its confirming runs.
        """
        gating = frozenset(self.sides.gating if self._is_statistical else ())
        watch = Watch(gating, self.policy.settings.min_effect, self._quarantined)
        return epoch_after(entries, self.baseline, comparison, watch)

    def needs_long_look(self, comparison: Comparison) -> bool:
        """Return whether a long look is due after a comparison that proved no change of the whole agent."""
        if not self.policy.looks_back or not self.is_of_branch or not self.current.pool:
            return False
        settled = comparison.verdict in {"unchanged", "improved"} and not comparison.begins_epoch
        return settled and is_long_look_due(self.epoch(comparison, self.current.pool[:1]))

    def _by_simple_rule(self) -> Comparison:
        verdict, reason, metrics = simple_rule_verdict(
            self.current, self._pairing.compared, self._quarantined, self._policy
        )
        cases = [
            case.model_copy(update={"notes": ["quarantined"]}) if case.id in self._quarantined else case
            for case in self._pairing.cases
        ]
        details = {"name": self.policy.name, "tolerance": self.policy.settings.tolerance, "reason": reason}
        proof = {"requested": not_provable(self._policy)}
        return self._comparison(Concluded(verdict, [], metrics, cases, details, [], proof))

    @cached_property
    def _quarantined(self) -> frozenset[str]:
        cases = [case for _, case in self.current.cases()]
        names = {case.id: case.name for _, case in self.baseline.cases()} | {case.id: case.name for case in cases}
        held = (case_id for case_id, name in names.items() if self.policy.quarantined(case_id, name, self.today))
        # An accepted change does not count, and its figures are shown all the same.
        return frozenset((*held, *self._accepted_cases))

    @cached_property
    def _accepted_cases(self) -> Mapping[str, Accepted]:
        return self.integrity.accepted_cases(self.current, self._stored)

    @cached_property
    def _accepted_metrics(self) -> Mapping[str, Accepted]:
        means = {name: metric.mean for name, metric in self.current.summary.metrics.items()}
        return self.integrity.accepted_metrics(means, self.policy.settings.tolerance)

    @cached_property
    def _policy(self) -> ComparePolicy:
        """The policy, by which accepted means do not count; nobody needs to ask on the base branch."""
        asked_by = "" if self.is_of_branch else self.policy.asked_by
        return replace(self.policy, accepted_means=frozenset(self._accepted_metrics), asked_by=asked_by)

    def _means_of(self, name: str) -> Iterator[float | None]:
        """Yield the mean of a metric in the baseline and in this run."""
        for run in (self.baseline, self.current):
            metric = run.summary.metrics.get(name)
            yield None if metric is None else metric.mean

    @cached_property
    def _pairing(self) -> Pairing:
        return pair_cases(self.current, self.baseline, self.known, self.gone, self.integrity.removed)

    @property
    def _stored(self) -> Results:
        return self.baseline if self.rescored is None else self.rescored.stored

    @property
    def _withdrawn(self) -> list[Unproven]:
        """What the change withdraws from the comparison.

        New scores of stored answers withdraw nothing less, unless the base commit has chosen their configuration.
        """
        chosen_by_base = self.rescored is None or self.integrity.base_cases is not None
        baseline = self.baseline if chosen_by_base else self._stored
        removed = self.integrity.removed
        return unpaired(
            PairedRuns(
                current=self.current,
                baseline=baseline,
                pairing=self._pairing
                if chosen_by_base
                else pair_cases(self.current, baseline, self.known, self.gone, removed),
                quarantined=self._quarantined,
                not_gating=self._not_gating,
                failures_are_scores=self._is_statistical,
            )
        )

    def _ungraded(self) -> list[Unproven]:
        """Return the failing cases that were compared with nothing; a merge has accepted those of the base branch."""
        if not self._is_statistical or self.is_of_branch:
            return []
        from agenteval.compare.ungraded import ungraded

        return ungraded(self.sides, [case for case in self._pairing.compared if case.id not in self._quarantined])

    @property
    def _not_gating(self) -> set[str]:
        return {name for name, gates in self.policy.gating.items() if not gates}

    def _not_run(self) -> Iterator[str]:
        """Yield the suites of the baseline that this run does not contain."""
        ran = {*self.gone, *(suite.path for suite in self.current.suites)}
        paired = {case.id for case in self._pairing.cases}
        for suite in self.baseline.suites:
            missing = sum(case.id not in paired for case in suite.cases)
            if suite.path not in ran and missing:
                yield f"{suite.path} is in the baseline and not in this run: {_cases(missing)} not compared"

    def _acknowledged(self) -> Iterator[str]:
        names = {case.id: case.name for run in (self.baseline, self.current) for _, case in run.cases()}
        alike: dict[tuple[str, str], list[str]] = {}
        for case_id, entry in self._accepted_cases.items():
            alike.setdefault((entry.change, _by(entry)), []).append(names.get(case_id, case_id))
        for (change, by), cases in alike.items():
            yield f"{some(sorted(cases), 'case')} ({change}) {'was' if len(cases) == 1 else 'were'} {by}"
        for name, entry in self._accepted_metrics.items():
            figures = " → ".join(f"{mean:.2f}" for mean in self._means_of(name) if mean is not None)
            yield f"the mean of {name} ({figures}) was {_by(entry)}"
        for entry in self.integrity.accepted:
            mean = self.current.summary.metrics.get(entry.metric)
            if mean is not None and mean.mean is not None and entry.metric not in self._accepted_metrics:
                by = f" by {entry.author}" if entry.author else ""
                yield f"the mean of {entry.metric} is {mean.mean:.2f}, and only {entry.after} was accepted{by}"

    @property
    def _begins(self) -> EpochBegin | None:
        """Why an epoch begins with this run without a proof; ``None`` if none does."""
        if not self.is_of_branch:
            return None
        accepted = [f"the mean of {name} was {_by(entry)}" for name, entry in self._accepted_metrics.items()]
        if accepted:
            return EpochBegin(cause="accepted", text="; ".join(accepted))
        newest = max(self.baseline.pool, key=lambda entry: entry.created_at, default=None)
        own = self.current.pool[0] if self.current.pool else None
        text = declared_change(own.made_with if own else None, newest.made_with if newest else None)
        return EpochBegin(cause="declared", text=text) if text else None

    def _comparison(self, concluded: Concluded) -> Comparison:
        run, policy = self.baseline.run, self.policy
        counting = {case.id for case in self._pairing.compared} - self._quarantined
        resources = compare_resources(self.current, self.baseline, counting, policy)
        lost = [*_without_scores(self.current, self.baseline, self._not_gating)]
        withdrawn = self._withdrawn
        rules = list(unproven_changes(self.integrity.differences))
        ungraded = self._ungraded()
        unproven = [*rules, *withdrawn, *concluded.unproven, *ungraded]
        further = (*rules, *ungraded)
        is_unproven = bool(unproven) and concluded.verdict != "regressed"
        reasons = [*(item.text for item in withdrawn), concluded.details["reason"], *(item.text for item in further)]
        headline = unproven[0].text if is_unproven else concluded.details.get("headline", concluded.details["reason"])
        begins = self._begins
        begun = [f"earlier runs do not count from now on: {begins.text}"] if begins else []
        return Comparison(
            baseline=BaselineInfo(
                commit=run.commit,
                ref=run.ref,
                run_id=run.id,
                created_at=run.started_at,
                distance=self.distance,
                between=list(self.between[:_MOST_BETWEEN]),
            ),
            verdict="unproven" if is_unproven else concluded.verdict,
            unproven=unproven,
            metrics=concluded.metrics,
            cases=with_acceptances(concluded.cases, self._accepted_cases),
            **concluded.proof,
            begins=begins,
            rescored=[] if self.rescored is None else list(self.rescored.metrics),
            policy={
                **concluded.details,
                "headline": headline,
                "reason": "; ".join(reasons),
                "resources": [item.model_dump() for item in resources],
                "notes": [*self.notes, *concluded.notes, *lost, *self._not_run(), *self._acknowledged(), *begun],
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
    return "1 case is" if count == 1 else f"{count:,} cases are"


def _scored(case: CaseResult) -> Iterator[str]:
    return (score.id for score in case.scores if score.score is not None)
