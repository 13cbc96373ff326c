"""Takes the gate from its evidence to a decision: makes, or refuses, the runs that it asks for."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from agenteval.compare.regression.decide import decide, decide_rise
from agenteval.compare.regression.model import Answer, Burden, Cost, Decision, Evidence, Request, Unavailable
from agenteval.compare.regression.on_files import decide_on_files
from agenteval.compare.sides import Sides
from agenteval.compare.statistical import Decided

T = TypeVar("T")
#: Makes the runs of a request.
Answering = Callable[[Request], Answer | Unavailable]

_Asking = Generator[Request, Answer | Unavailable, Decision]
_NOTHING_COMPARED = Decision(verdict="unchanged", stage="screen", metrics=())
_OFF = Unavailable("runs", "`confirm: off` runs nothing again; `confirm: against-base` would prove or clear it")
_LATER = Unavailable("runs", "further runs would prove or clear it")


@dataclass(frozen=True)
class Deciding:
    """Decides about a comparison; what needs no further run is computed once.

    Attributes:
        proves_rises: whether improvements are proven too: on the base branch, and if somebody asked for it.
        burden: what an earlier attempt of the same change was proven to have lost.
    """

    sides: Sides
    proves_rises: bool = False
    burden: Burden | None = None

    @cached_property
    def screened(self) -> Decided:
        """The decision without running anything again.

        A suspicion is unproven. If nothing can ever run again, an unmistakable drop is proven by the results alone.
        """
        evidence, policy = self.sides.evidence, self.sides.policy
        if not _has_common_scores(evidence):
            return Decided(_NOTHING_COMPARED)
        if policy.is_final:
            oldest, *further = self.sides.runs
            first = replace(evidence, first=oldest)
            decision = decide_on_files(first, tuple(further), policy.settings, self.burden)
            return Decided(decision, is_final=True)
        why = _OFF if policy.confirm == "off" else _LATER
        return Decided(driven(self._falls(), lambda _: why), rise=self._screened_rise)

    @property
    def needs_runs(self) -> bool:
        """Whether something has to run again before the gate can decide."""
        if self.sides.policy.confirm == "off":
            return False
        return _is_open(self.screened.decision) or _is_open(self._screened_rise)

    def proven(self, answer: Answering) -> Decided:
        """Decide with the runs that the gate asks for."""
        decision = self.screened.decision
        if _is_open(decision):
            decision = driven(self._falls(), answer)
        if decision.verdict != "unchanged" or not _is_open(self._screened_rise):
            return Decided(decision, rise=self._screened_rise)
        rise = driven(self._rises(), answer)
        cost = Cost(runs=decision.cost.runs + rise.cost.runs, calls=decision.cost.calls + rise.cost.calls)
        return Decided(replace(rise if rise.verdict == "improved" else decision, cost=cost), rise=rise)

    @cached_property
    def _screened_rise(self) -> Decision:
        """The decision about a rise without running anything again; it stays closed where no rise is proven."""
        can_rise = self.proves_rises and self.sides.policy.confirms_beside_base
        if not can_rise or not _has_common_scores(self.sides.evidence):
            return _NOTHING_COMPARED
        return driven(self._rises(), lambda _: _LATER)

    def _falls(self) -> _Asking:
        return decide(self.sides.evidence, self.sides.policy.settings, self.burden)

    def _rises(self) -> _Asking:
        return decide_rise(self.sides.evidence, self.sides.policy.settings)


def _is_open(decision: Decision) -> bool:
    """Return whether a decision lacks runs that it asked for."""
    return decision.missing is not None


def _has_common_scores(evidence: Evidence) -> bool:
    return bool(evidence.first) and any(run for run in evidence.pool)


def driven(asking: Generator[Request, Answer | Unavailable, T], answer: Answering) -> T:
    """Answer every request of the gate, and return its result."""
    try:
        request = next(asking)
        while True:
            request = asking.send(answer(request))
    except StopIteration as ended:
        result: T = ended.value
        return result
