"""Compares a run with its baseline: makes the evidence, and decides with the passes that the gate asks for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import cached_property
from typing import TypeVar

from agenteval.core.records import dataclass, field, replace
from agenteval.gate.baseline import is_look_due
from agenteval.gate.decide import decide, decide_improvement, decline
from agenteval.gate.evidence import Sides
from agenteval.gate.integrity import Accepted, Integrity
from agenteval.gate.pairing import Rescored, compared_cases, continues_branch, pair_cases
from agenteval.gate.proof import Ask, CannotRunError, GateOutcome, Test, no_worse, pairs_needed, still_there
from agenteval.gate.suspicion import may_stop
from agenteval.gate.unpaired import unpaired
from agenteval.gate.values import ANSWERED, ComparePolicy, GateMetric, Pass, cases_of
from agenteval.results.comparison import ComparedCase
from agenteval.results.model import Proven, Results
from agenteval.results.verdict import Unproven

_FEWEST_PAIRS = 4

Found = TypeVar("Found")


def _today() -> date:
    return datetime.now(UTC).date()


@dataclass(frozen=True)
class Decision:
    """What the gate found about a run.

    Attributes:
        rise: about an improvement; ``None`` if none was looked for.
        look: of a look back at the base branch; ``None`` if none was made.
        commit: the commit that ran beside the change.
    """

    outcome: GateOutcome
    rise: GateOutcome | None = None
    look: GateOutcome | None = None
    commit: str | None = None

    @property
    def calls(self) -> int:
        """Iterations that ran again, both sides."""
        return sum(found.calls for found in (self.outcome, self.rise, self.look) if found is not None)


@dataclass(frozen=True)
class Comparer:
    """Compares one run with one baseline.

    Args:
        known: ids of all cases in the suites of the current run, filtered-out ones included.
        today: the UTC date that decides which quarantine entries have ended.
        gone: paths of the baseline's suites that do not exist any more; their cases are removed.
        file: of the baseline, that the caller named; empty if it was searched.
        distance: number of commits between the baseline's commit and the commit where its search began.
        proven: what earlier attempts of the same change have proven.
        unrelated: commits whose runs do not count, because they are not ancestors of the base commit.
        integrity: how suites and rules differ from those of the base commit, and what was accepted.
        rescored: what the baseline was before metrics scored its stored answers again; ``None`` if none did.
    """

    current: Results
    baseline: Results
    known: Collection[str]
    policy: ComparePolicy = field(default_factory=ComparePolicy)
    today: date = field(default_factory=_today)
    notes: tuple[str, ...] = ()
    gone: frozenset[str] = frozenset()
    file: str = ""
    distance: int | None = None
    between: Sequence[str] = ()
    proven: Sequence[Proven] = ()
    unrelated: frozenset[str] = frozenset()
    integrity: Integrity = field(default_factory=Integrity)
    rescored: Rescored | None = None

    @cached_property
    def sides(self) -> Sides:
        """What the gate compares."""
        return Sides(self.current, self.baseline, self.policy_in_force, self.quarantined, self.unrelated)

    @property
    def is_of_branch(self) -> bool:
        """Whether the run is of the branch of its baseline, where improvements and look back are proven too."""
        return continues_branch(self.current.run, self.baseline.run)

    @cached_property
    def by_files(self) -> Decision:
        """The decision of the results alone, without running anything."""
        return Decision(answered(decide(replace(self.sides.evidence, can_run=False), self.policy.rules), _never))

    @property
    def needs_runs(self) -> bool:
        """Whether something has to run before the gate can decide."""
        if not self.sides.evidence.can_run or not self.sides.metrics:
            return False
        is_asked = bool(self.proven) or self.policy.no_worse_than is not None or self._looks_back
        return is_asked or self.by_files.outcome.state != "clear" or self._rises_in_files

    @property
    def _rises_in_files(self) -> bool:
        if not (self.is_of_branch or self.policy_in_force.asked_by):
            return False
        evidence = replace(self.sides.evidence, can_run=False)
        return answered(decide_improvement(evidence, self.policy.rules), _never).state != "clear"

    @property
    def _looks_back(self) -> bool:
        runs = self.current.baseline_runs
        return self.is_of_branch and bool(runs) and is_look_due(runs[0], self.baseline)

    def may_stop(self) -> bool:
        """Return whether the first run may end early, as far as it has come."""
        evidence = self.sides.evidence
        return may_stop(evidence.first, evidence.baseline, self.sides.metrics, self.policy.rules)

    def prove(self, again: Callable[[Ask], Pass], look_back: Callable[[Ask], Pass] | None = None) -> Decision:
        """Decide with the passes that the gate asks for."""
        evidence, rules, seed = self.sides.evidence, self.policy.rules, self.current.run.id
        found = self._still_there(again) if self.proven else None
        if found is None and self.policy.no_worse_than is not None and not self.is_of_branch:
            found = self._no_worse(again, self.policy.no_worse_than)
        calls = 0
        if found is None or found.state == "clear":
            calls = found.calls if found is not None else 0
            found = answered(decide(evidence, rules, seed), again)
            found.calls += calls
        decision = Decision(found)
        if found.state in {"clear", "cleared"} and (self.is_of_branch or self.policy_in_force.asked_by):
            decision = replace(decision, rise=answered(decide_improvement(evidence, rules, seed), again))
        if self._looks_back and look_back is not None and found.state in {"clear", "cleared"}:
            decision = replace(decision, look=answered(self._decline(), look_back))
        return decision

    def _still_there(self, again: Callable[[Ask], Pass]) -> GateOutcome | None:
        metrics = self.sides.metrics
        asked = self._asked
        proofs = [
            Test(item.metric, item.case, -item.fall, 0.0, 0.0, (), ())
            for item in self.proven
            if item.metric in metrics
            and (item.case in asked[item.metric] if item.case is not None else not metrics[item.metric].is_accepted)
        ]
        if not proofs:
            return None
        try:
            return answered(still_there(proofs, metrics, asked, self.policy.rules), again)
        except CannotRunError as error:
            return GateOutcome(
                "unproven",
                f"an earlier run was proven worse, and that could not be checked again: {error.why}",
                error.mended_by,
                metrics=metrics,
            )

    @property
    def _asked(self) -> dict[str, list[str]]:
        first = self.sides.evidence.first
        return {name: cases_of(first, [name]) for name in self.sides.metrics} | {ANSWERED: cases_of(first)}

    def _no_worse(self, again: Callable[[Ask], Pass], margin: float) -> GateOutcome:
        metrics = _means(self.sides)
        pairs = planned_pairs(self.sides, margin)
        cases = cases_of(self.sides.evidence.first, metrics)
        asking = no_worse(metrics, margin, pairs, cases, self.policy.rules, seed=self.current.run.id)
        try:
            return answered(asking, again)
        except CannotRunError as error:
            why = f"a drop of {margin:.2f} is not excluded: {error.why}"
            return GateOutcome("unproven", why, error.mended_by, metrics=self.sides.metrics)

    def _decline(self) -> Generator[Ask, Pass, GateOutcome]:
        evidence = self.sides.evidence
        newest = [*evidence.baseline[-2:], evidence.first]
        return decline(newest, self.sides.first_runs(), _means(self.sides), self.policy.rules, self.current.run.id)

    @property
    def start(self) -> str | None:
        """The commit since which the base branch is the same; ``None`` if it is unknown."""
        baseline = self.sides.usable.runs
        return baseline[-1].start if baseline else None

    @cached_property
    def quarantined(self) -> frozenset[str]:
        """The ids of the cases that do not count: quarantined and accepted ones."""
        cases = [case for _, case in self.current.cases()]
        names = {case.id: case.name for _, case in self.baseline.cases()} | {case.id: case.name for case in cases}
        held = (case_id for case_id, name in names.items() if self.policy.quarantined(case_id, name, self.today))
        # An accepted change does not count, and its figures are shown all the same.
        return frozenset((*held, *self.accepted_cases))

    @property
    def counting(self) -> set[str]:
        """The ids of the compared cases that count."""
        return {case.id for case in compared_cases(self.pairing)} - self.quarantined

    @cached_property
    def accepted_cases(self) -> Mapping[str, Accepted]:
        """The entries for cases of the two runs, by case id."""
        return self.integrity.accepted_cases(self.current, self._stored)

    @cached_property
    def accepted_metrics(self) -> Mapping[str, Accepted]:
        """The entries for means that fell no further than was accepted, by metric."""
        means = {name: metric.mean for name, metric in self.current.summary.metrics.items()}
        return self.integrity.accepted_metrics(means, self.policy.rules.least)

    @cached_property
    def policy_in_force(self) -> ComparePolicy:
        """The policy, by which accepted means do not count; nobody needs to ask on the base branch."""
        asked_by = "" if self.is_of_branch else self.policy.asked_by
        return replace(self.policy, accepted_means=frozenset(self.accepted_metrics), asked_by=asked_by)

    @cached_property
    def pairing(self) -> tuple[ComparedCase, ...]:
        """The cases of both runs."""
        return pair_cases(self.current, self.baseline, self.known, self.gone, self.integrity.removed)

    @property
    def _stored(self) -> Results:
        return self.baseline if self.rescored is None else self.rescored.stored

    @property
    def withdrawn(self) -> list[Unproven]:
        """What the change withdraws from the comparison.

        New scores of stored answers withdraw nothing less, unless the base commit has chosen their configuration.
        """
        if self.rescored is None or self.integrity.base_cases is not None:
            return unpaired(self.sides, self.baseline, self.pairing)
        removed = self.integrity.removed
        pairing = pair_cases(self.current, self._stored, self.known, self.gone, removed)
        return unpaired(self.sides, self._stored, pairing)


def answered(asking: Generator[Ask, Pass, Found], again: Callable[[Ask], Pass]) -> Found:
    """Answer what a generator asks for, and return what it returns."""
    try:
        ask = next(asking)
        while True:
            try:
                seen = again(ask)
            except CannotRunError as error:
                ask = asking.throw(error)
            else:
                ask = asking.send(seen)
    except StopIteration as end:
        found: Found = end.value
        return found


def planned_pairs(sides: Sides, margin: float) -> int:
    """Return the pairs that prove ``no worse than``, in 8 of 10 runs of an agent that is as good."""
    baseline = sides.evidence.baseline
    needed = [pairs_needed([run[name] for run in baseline], margin) for name in _means(sides)]
    return max((number for number in needed if number is not None), default=_FEWEST_PAIRS)


def _means(sides: Sides) -> dict[str, GateMetric]:
    return {name: metric for name, metric in sides.metrics.items() if not metric.slack and not metric.is_accepted}


def _never(ask: Ask) -> Pass:
    raise CannotRunError(f"nothing can run for {ask.stage}")
