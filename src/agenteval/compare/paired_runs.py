"""Two runs with their cases in pairs, and what of them does not count."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from agenteval.compare.pairing import Pairing
from agenteval.results.comparison import ComparedCase
from agenteval.results.model import Results


@dataclass(frozen=True)
class PairedRuns:
    """A run and the run that it is compared with.

    Attributes:
        pairing: their cases. Cases that a filter left out are not in it.
        quarantined: ids of quarantined cases, which do not count.
        not_gating: ids of metrics that the policy excludes from the gate.
        failures_are_scores: whether a failure of the agent counts as a score of 0, so that nothing is lost.
    """

    current: Results
    baseline: Results
    pairing: Pairing
    quarantined: Collection[str]
    not_gating: Collection[str]
    failures_are_scores: bool = False

    def counting(self) -> Iterator[ComparedCase]:
        """Yield the cases of the baseline that count, removed and changed ones included."""
        return (case for case in self.pairing.cases if case.change != "new" and case.id not in self.quarantined)
