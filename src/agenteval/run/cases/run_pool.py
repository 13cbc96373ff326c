"""What later comparisons need of a run too long to be held in memory: the scores of every case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agenteval.compare.pairing import pool_case, scores_of
from agenteval.results.model import CaseResult, PoolCase
from agenteval.run.cases.compact_scores import CompactScores

if TYPE_CHECKING:
    from agenteval.run.plan import PlannedCase

_AT_ONCE = 1000


class RunPool:
    """The run's own entry of its pool.

    Args:
        cases: of the plan.
    """

    def __init__(self, cases: Sequence[PlannedCase]) -> None:
        self._cases = cases
        self._scores = CompactScores()

    def add(self, position: int, case: CaseResult) -> None:
        """One more case, by its position in the plan."""
        aggregate = self._cases[position].suite.aggregate
        self._scores.add(position, scores_of(case, aggregate.threshold if aggregate else None))

    def cases(self) -> Iterator[dict[str, PoolCase]]:
        """The cases by their ids in the order of the plan, some at a time."""
        found: dict[str, PoolCase] = {}
        for position, planned in enumerate(self._cases):
            scores = self._scores.get(position)
            if scores is not None:
                found[planned.case.id] = pool_case(planned.case.fingerprints, scores)
            if len(found) == _AT_ONCE:
                yield found
                found = {}
        yield found
