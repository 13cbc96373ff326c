"""Compares a run with its baseline: from the evidence to a word, in the types of results.json."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import cached_property
from typing import TypeVar

from agenteval.core.records import dataclass, field, replace
from agenteval.gate.compared import annotated, compared_metrics, proofs_of, resources_of
from agenteval.gate.decide import decide, decide_improvement, long_look
from agenteval.gate.evidence import Sides
from agenteval.gate.integrity.accepted import Accepted
from agenteval.gate.integrity.integrity import Integrity, unproven_changes, with_acceptances
from agenteval.gate.pairing import Pairing, Rescored, continues_branch, pair_cases
from agenteval.gate.policy import ComparePolicy
from agenteval.gate.pool import is_look_due
from agenteval.gate.proof import Ask, CannotRunError, GateOutcome, Test, no_worse, pairs_needed, still_there
from agenteval.gate.run_scores import declared_change
from agenteval.gate.suspicion import detectable_drop, may_stop
from agenteval.gate.unpaired import ungraded, unpaired
from agenteval.gate.values import ANSWERED, GateMetric, Pass, case_means, cases_of, joined, length
from agenteval.gate.words import NO_REGRESSION, Telling, better, headline, sentences, some
from agenteval.results.comparison import (
    AnchorCause,
    BaselineInfo,
    Comparison,
    Cost,
    Suspicion,
)
from agenteval.results.model import Proven, Results
from agenteval.results.verdict import Unproven

# Commits that a report lists.
_MOST_BETWEEN = 20
_BRANCH = "refs/heads/"
_FEWEST_PAIRS = 4
# What a proof decides about a metric, and about a comparison.
_OF_A_PROOF = ["word", "baseline", "current", "difference", "low", "high", "p", "limit", "passes", "moved"]
_OF_A_DECISION = ["word", "stage", "why", "headline", "sentences", "suspicions", "pairs", "family", "proofs", "cost"]

Found = TypeVar("Found")


def _today() -> date:
    return datetime.now(UTC).date()


@dataclass(frozen=True)
class Decision:
    """What the gate found about a run.

    Attributes:
        rise: about an improvement; ``None`` if none was looked for.
        look: of a long look at the base branch; ``None`` if none was made.
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
    distance: int | None = None
    between: Sequence[str] = ()
    proven: Sequence[Proven] = ()
    unrelated: frozenset[str] = frozenset()
    integrity: Integrity = field(default_factory=Integrity)
    rescored: Rescored | None = None

    @cached_property
    def sides(self) -> Sides:
        """What the gate compares."""
        return Sides(self.current, self.baseline, self._policy, self._quarantined, self.unrelated)

    @property
    def is_of_branch(self) -> bool:
        """Whether the run is of the branch of its baseline, where improvements and long looks are proven too."""
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
        return is_asked or self.by_files.outcome.word != "clear" or self._rises_in_files

    @property
    def _rises_in_files(self) -> bool:
        if not (self.is_of_branch or self._policy.asked_by):
            return False
        evidence = replace(self.sides.evidence, can_run=False)
        return answered(decide_improvement(evidence, self.policy.rules), _never).word != "clear"

    @property
    def _looks_back(self) -> bool:
        return self.is_of_branch and bool(self.current.pool) and is_look_due(self.current.pool[0], self.baseline)

    def may_stop(self) -> bool:
        """Return whether the first run may end early, as far as it has come."""
        return may_stop(self.sides.evidence.first, self.sides.evidence.pool, self.sides.metrics, self.policy.rules)

    def decide(self) -> Comparison:
        """Decide without running anything: what the run's own results have proven beside the same baseline holds."""
        found, stored = self.concluded(self.by_files), self.current.comparison
        if stored is None or stored.baseline.run_id != self.baseline.run.id or not self._holds(stored):
            return found
        points = [point for point in stored.unproven if point.what == "proof"]
        points += [point for point in found.unproven if point.what != "proof"]
        # What else made it unproven may have been accepted since.
        word = "proven" if stored.word == "proven" else "unproven" if points else "cleared"
        told = points[0].text if points else NO_REGRESSION if word == "cleared" else stored.headline
        cases = with_acceptances(stored.cases, self._accepted_cases)
        update = {"word": word, "headline": told, "unproven": points, "cases": cases, "notes": found.notes}
        return stored.model_copy(update=update)

    def _holds(self, stored: Comparison) -> bool:
        """Return whether a stored decision rests on further passes, and not only on what was accepted since."""
        if stored.stage == "first" or stored.word == "suspicious":
            return False
        found = stored.worse if stored.word == "proven" else stored.suspicions
        out = {*self._quarantined, *self._accepted_metrics}
        return not found or any((item.case or item.metric) not in out for item in found)

    def prove(self, again: Callable[[Ask], Pass], look_back: Callable[[Ask], Pass] | None = None) -> Decision:
        """Decide with the passes that the gate asks for.

        Args:
            again: makes a pass; it raises ``CannotRunError``.
            look_back: the same beside the anchor commit; ``None`` if that cannot run.
        """
        evidence, rules, seed = self.sides.evidence, self.policy.rules, self.current.run.id
        found = self._still_there(again) if self.proven else None
        if found is None and self.policy.no_worse_than is not None and not self.is_of_branch:
            found = self._no_worse(again, self.policy.no_worse_than)
        calls = 0
        if found is None or found.word == "clear":
            calls = found.calls if found is not None else 0
            found = answered(decide(evidence, rules, seed), again)
            found.calls += calls
        decision = Decision(found)
        if found.word in {"clear", "cleared"} and (self.is_of_branch or self._policy.asked_by):
            decision = replace(decision, rise=answered(decide_improvement(evidence, rules, seed), again))
        if self._looks_back and look_back is not None and found.word in {"clear", "cleared"}:
            decision = replace(decision, look=answered(self._long_look(), look_back))
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
                f"an earlier attempt was proven worse, and that could not be looked at again: {error.why}",
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

    def _long_look(self) -> Generator[Ask, Pass, GateOutcome]:
        evidence = self.sides.evidence
        newest = [*evidence.pool[-2:], evidence.first]
        return long_look(newest, self.sides.anchor(), _means(self.sides), self.policy.rules, self.current.run.id)

    def concluded(self, decision: Decision) -> Comparison:
        """Return the comparison with a decision."""
        out, sides = decision.outcome, self.sides
        told = self._telling(decision)
        points = [*self._points(out, told)]
        run, pool = self.baseline.run, self.sides.pool.runs
        cause, why_new = self._cause(decision)
        planned = sum(case.planned for _, case in self.current.cases())
        cost = Cost(calls=decision.calls, runs=round(decision.calls / max(planned, 1), 2)) if decision.calls else None
        look = self._look_words(decision, told)
        return Comparison(
            baseline=BaselineInfo(
                commit=run.commit,
                ref=run.ref,
                run_id=run.id,
                created_at=run.started_at,
                distance=self.distance,
                between=list(self.between[:_MOST_BETWEEN]),
            ),
            word=self._word(decision, points),
            stage=out.stage,
            why=out.why if out.word == "unproven" else "",
            headline=look[0] if look and look[0] else points[0].text if points else headline(out, told),
            sentences=[*sentences(out, told), *(look[1:] if look else ())],
            unproven=points,
            metrics=compared_metrics(sides, decision.outcome, decision.rise, decision.look),
            cases=with_acceptances(annotated(sides, self._pairing.cases, out, decision.rise), self._accepted_cases),
            base_sha=decision.commit,
            anchor_sha=pool[-1].anchor if pool else None,
            cause=cause,
            pool=[entry.run_id for entry in pool],
            suspicions=[
                Suspicion(metric=item.metric, case=item.case, p=item.p, stage=item.stage) for item in out.suspicions
            ],
            pairs=out.pairs,
            family=out.family,
            proofs=[
                *proofs_of(out),
                *(proofs_of(decision.rise, better=True) if decision.rise is not None else ()),
            ],
            memory=out.stage == "memory",
            cost=cost,
            resources=resources_of(self.current, self.baseline, self._counting),
            improvement=self._improvement(decision, told),
            long_look=" ".join(look) if look else "",
            rescored=[] if self.rescored is None else list(self.rescored.metrics),
            notes=[*self.notes, *sides.earlier.notes, *self._not_run(), *self._acknowledged(), *why_new],
        )

    def replaced(self, comparison: Comparison, decision: Decision) -> Comparison:
        """Return a comparison with another decision about the same run, whose pool is not known any more."""
        found = self.concluded(decision)
        told = {metric.id: metric for metric in found.metrics}
        metrics = [
            metric.model_copy(update={name: getattr(told[metric.id], name) for name in _OF_A_PROOF})
            if metric.id in told and told[metric.id].p is not None
            else metric.model_copy(
                update={"word": "cleared" if metric.word in {"suspicious", "unproven"} else metric.word}
            )
            for metric in comparison.metrics
        ]
        marks = {case.id: case for case in found.cases}
        cases = [
            case.model_copy(update={"change": marks[case.id].change, "notes": marks[case.id].notes})
            if case.id in marks and case.change == "same"
            else case
            for case in comparison.cases
        ]
        update = {name: getattr(found, name) for name in [*_OF_A_DECISION, "base_sha"]}
        points = [*(point for point in comparison.unproven if point.what != "proof"), *found.unproven]
        return comparison.model_copy(update={**update, "unproven": points, "metrics": metrics, "cases": cases})

    def _word(self, decision: Decision, points: Sequence[Unproven]) -> str:
        if decision.look is not None and decision.look.word == "proven":
            return "proven"
        word = decision.outcome.word
        return "unproven" if points and word != "proven" else word

    def _telling(self, decision: Decision) -> Telling:
        sides = self.sides
        evidence = sides.evidence
        names = {case.id: case.name for run in (self.baseline, self.current) for _, case in run.cases()}
        ref = self.baseline.run.ref or ""
        drops = [
            drop
            for name, metric in sides.metrics.items()
            if not metric.slack
            and (
                drop := detectable_drop(
                    [run[name] for run in evidence.pool], length(evidence.first[name]), self.policy.rules
                )
            )
        ]
        return Telling(
            names=names,
            base=ref.removeprefix(_BRANCH) if ref.startswith(_BRANCH) else "the base",
            commit=decision.commit,
            allowed={name: share for name in sides.metrics if (share := sides.allowed(name)) is not None},
            lower=_lower(sides),
            cases=len(sides.compared),
            drop=max(filter(None, drops), default=None),
        )

    def _points(self, out: GateOutcome, told: Telling) -> Iterator[Unproven]:
        """Yield everything that counts and could not be compared or proven."""
        yield from unproven_changes(self.integrity.differences)
        yield from self._withdrawn
        if out.word == "unproven":
            yield Unproven(
                what="proof", text=headline(out, told), details=tuple(sentences(out, told)), mended_by=out.mended_by
            )
        if not self.is_of_branch:
            yield from ungraded(
                self.sides, [case for case in self._pairing.compared if case.id not in self._quarantined]
            )

    def _improvement(self, decision: Decision, told: Telling) -> str:
        found = better(decision.rise, told) if decision.rise is not None and decision.rise.word == "proven" else ""
        by = self._policy.asked_by
        if found or not by:
            return found
        if decision.rise is None:
            return f"{by} asked for the proof of an improvement: nothing can run again here."
        why = f" ({decision.rise.why})" if decision.rise.why else ""
        return f"{by} asked for the proof of an improvement: none is proven{why}."

    def _look_words(self, decision: Decision, told: Telling) -> list[str]:
        look = decision.look
        if look is None:
            return []
        anchor = self._anchor or "the anchor"
        beside = replace(told, commit=self._anchor, base="the anchor")
        if look.word == "proven":
            return [f"since {anchor[:7]} {headline(look, beside)}", *sentences(look, beside)]
        if look.word == "unproven":
            return ["", f"The base branch could not be compared with {anchor[:7]}: {look.why}."]
        return ["", f"No decline since {anchor[:7]}."]

    @property
    def _anchor(self) -> str | None:
        pool = self.sides.pool.runs
        return pool[-1].anchor if pool else None

    def _cause(self, decision: Decision) -> tuple[AnchorCause | None, list[str]]:
        """Return why a new pool begins with this run, and a note about it."""
        if not self.is_of_branch:
            return None, []
        found = (decision.outcome, decision.rise, decision.look)
        if any(out is not None and any(proof.case is None for proof in out.proofs) for out in found):
            return "proven", []
        accepted = [f"the mean of {name} was {_by(entry)}" for name, entry in self._accepted_metrics.items()]
        if accepted:
            return "accepted", [f"earlier runs do not count from now on: {'; '.join(accepted)}"]
        newest = max(self.baseline.pool, key=lambda entry: entry.created_at, default=None)
        own = self.current.pool[0] if self.current.pool else None
        text = declared_change(own.made_with if own else None, newest.made_with if newest else None)
        return ("declared", [f"earlier runs do not count from now on: {text}"]) if text else (None, [])

    @cached_property
    def _quarantined(self) -> frozenset[str]:
        cases = [case for _, case in self.current.cases()]
        names = {case.id: case.name for _, case in self.baseline.cases()} | {case.id: case.name for case in cases}
        held = (case_id for case_id, name in names.items() if self.policy.quarantined(case_id, name, self.today))
        # An accepted change does not count, and its figures are shown all the same.
        return frozenset((*held, *self._accepted_cases))

    @property
    def _counting(self) -> set[str]:
        return {case.id for case in self._pairing.compared} - self._quarantined

    @cached_property
    def _accepted_cases(self) -> Mapping[str, Accepted]:
        return self.integrity.accepted_cases(self.current, self._stored)

    @cached_property
    def _accepted_metrics(self) -> Mapping[str, Accepted]:
        means = {name: metric.mean for name, metric in self.current.summary.metrics.items()}
        return self.integrity.accepted_metrics(means, self.policy.rules.least)

    @cached_property
    def _policy(self) -> ComparePolicy:
        """The policy, by which accepted means do not count; nobody needs to ask on the base branch."""
        asked_by = "" if self.is_of_branch else self.policy.asked_by
        return replace(self.policy, accepted_means=frozenset(self._accepted_metrics), asked_by=asked_by)

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
        if self.rescored is None or self.integrity.base_cases is not None:
            return unpaired(self.sides, self.baseline, self._pairing)
        removed = self.integrity.removed
        pairing = pair_cases(self.current, self._stored, self.known, self.gone, removed)
        return unpaired(self.sides, self._stored, pairing)

    def _not_run(self) -> Iterator[str]:
        """Yield the suites of the baseline that this run does not contain."""
        ran = {*self.gone, *(suite.path for suite in self.current.suites)}
        paired = {case.id for case in self._pairing.cases}
        for suite in self.baseline.suites:
            missing = sum(case.id not in paired for case in suite.cases)
            if suite.path not in ran and missing:
                cases = "1 case is" if missing == 1 else f"{missing:,} cases are"
                yield f"{suite.path} is in the baseline and not in this run: {cases} not compared"

    def _acknowledged(self) -> Iterator[str]:
        names = {case.id: case.name for run in (self.baseline, self.current) for _, case in run.cases()}
        alike: dict[tuple[str, str], list[str]] = {}
        for case_id, entry in self._accepted_cases.items():
            alike.setdefault((entry.change, _by(entry)), []).append(names.get(case_id, case_id))
        for (change, by), cases in alike.items():
            yield f"{some(sorted(cases), 'case')} ({change}) {'was' if len(cases) == 1 else 'were'} {by}"
        for name, entry in self._accepted_metrics.items():
            means = (run.summary.metrics.get(name) for run in (self.baseline, self.current))
            figures = " → ".join(
                f"{found.mean:.2f}" for found in means if found is not None and found.mean is not None
            )
            yield f"the mean of {name} ({figures}) was {_by(entry)}"
        for entry in self.integrity.accepted:
            mean = self.current.summary.metrics.get(entry.metric)
            if mean is not None and mean.mean is not None and entry.metric not in self._accepted_metrics:
                by = f" by {entry.author}" if entry.author else ""
                yield f"the mean of {entry.metric} is {mean.mean:.2f}, and only {entry.after} was accepted{by}"


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
    pool = sides.evidence.pool
    needed = [pairs_needed([run[name] for run in pool], margin) for name in _means(sides)]
    return max((number for number in needed if number is not None), default=_FEWEST_PAIRS)


def _means(sides: Sides) -> dict[str, GateMetric]:
    """Return the scores whose mean counts."""
    return {name: metric for name, metric in sides.metrics.items() if not metric.slack and not metric.is_accepted}


def _never(ask: Ask) -> Pass:
    raise CannotRunError(f"nothing can run for {ask.stage}")


def _lower(sides: Sides) -> dict[str, float]:
    """Return by how much the mean of each metric is lower than in the pool."""
    found = {}
    for name in sides.metrics:
        now = case_means(sides.evidence.first[name])
        then = case_means(joined([run[name] for run in sides.evidence.pool]))
        both = [now[case] - then[case] for case in now if case in then]
        if both:
            found[name] = sum(both) / len(both)
    return found


def _by(entry: Accepted) -> str:
    return f"accepted{f' by {entry.author}' if entry.author else ''}: {entry.reason}"
