"""Takes the gate from its evidence to a decision: makes, or refuses, the runs that it asks for."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace

from agenteval.compare.policy import ComparePolicy
from agenteval.compare.regression.decide import decide, decide_rise
from agenteval.compare.regression.model import Answer, Burden, Cost, Decision, Evidence, Request, Unavailable
from agenteval.compare.regression.on_files import decide_on_files
from agenteval.compare.sides import Sides
from agenteval.compare.statistical import Decided

#: Makes the runs of a request.
Answering = Callable[[Request], Answer | Unavailable]

_Asking = Generator[Request, Answer | Unavailable, Decision]
_NOTHING_COMPARED = Decision(verdict="unchanged", stage="screen", metrics=())
_OFF = Unavailable("runs", "`confirm: off` runs nothing again; `confirm: against-base` would prove or clear it")
_LATER = Unavailable("runs", "further runs would prove or clear it")


def screened(sides: Sides, burden: Burden | None = None) -> Decided:
    """Decide without running anything again.

    A suspicion is unproven. If nothing can ever run again, an unmistakable drop is proven by the results alone.

    Args:
        sides: what is compared.
        burden: what an earlier attempt of the same change was proven to have lost.
    """
    evidence, policy = sides.evidence, sides.policy
    if not _has_common_scores(evidence):
        return Decided(_NOTHING_COMPARED)
    if policy.is_final:
        oldest, *further = [*sides.further, evidence.first]
        decision = decide_on_files(replace(evidence, first=oldest), tuple(further), policy.settings)
        return Decided(decision, is_final=True)
    why = _OFF if policy.confirm == "off" else _LATER
    return Decided(_driven(decide(evidence, policy.settings, burden), lambda _: why))


def needs_runs(evidence: Evidence, policy: ComparePolicy, *, is_merged: bool, burden: Burden | None = None) -> bool:
    """Return whether something has to run again before the gate can decide.

    Args:
        evidence: what the gate decides on.
        policy: the comparison policy.
        is_merged: whether this is a run of the base branch, where improvements are proven too.
        burden: what an earlier attempt of the same change was proven to have lost.
    """
    if policy.confirm == "off" or not _has_common_scores(evidence):
        return False
    return _asks(decide(evidence, policy.settings, burden)) or (
        _proves_rises(policy, is_merged=is_merged) and _asks(decide_rise(evidence, policy.settings))
    )


def proven(
    evidence: Evidence,
    policy: ComparePolicy,
    answer: Answering,
    *,
    is_merged: bool,
    burden: Burden | None = None,
) -> Decided:
    """Decide with the runs that the gate asks for.

    Args:
        evidence: what the gate decides on.
        policy: the comparison policy.
        answer: makes the runs of a request.
        is_merged: whether this is a run of the base branch, where improvements are proven too.
        burden: what an earlier attempt of the same change was proven to have lost.
    """
    decision = _driven(decide(evidence, policy.settings, burden), answer)
    if decision.verdict != "unchanged" or not _proves_rises(policy, is_merged=is_merged):
        return Decided(decision)
    rise = _driven(decide_rise(evidence, policy.settings), answer)
    cost = Cost(runs=decision.cost.runs + rise.cost.runs, calls=decision.cost.calls + rise.cost.calls)
    if rise.verdict == "improved":
        return Decided(replace(rise, cost=cost))
    return Decided(replace(decision, cost=cost))


def _has_common_scores(evidence: Evidence) -> bool:
    return bool(evidence.first) and any(run for run in evidence.pool)


def _proves_rises(policy: ComparePolicy, *, is_merged: bool) -> bool:
    return is_merged and policy.confirms_beside_base


def _asks(asking: _Asking) -> bool:
    try:
        next(asking)
    except StopIteration:
        return False
    asking.close()
    return True


def _driven(asking: _Asking, answer: Answering) -> Decision:
    """Answer every request of a decision, and return it."""
    try:
        request = next(asking)
        while True:
            request = asking.send(answer(request))
    except StopIteration as ended:
        decision: Decision = ended.value
        return decision
