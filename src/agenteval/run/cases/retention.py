"""Which cases of a long run stay in memory, and as much of them as its reports show.

The cases themselves are in the journal. Reports list so many cases and no more, the first of those that did not pass
before those that did; totals come from the summary.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable

from agenteval.report.size_limits import SUMMARY_LEVELS
from agenteval.results.archive import outline, without_texts
from agenteval.results.model import CaseResult

#: No report lists more cases.
MOST_SHOWN = max(level.max_rows for level in SUMMARY_LEVELS)

#: What stays of a case that no report lists; ``None`` if nothing does.
Rest = Callable[[CaseResult], CaseResult | None]


class Keeping:
    """Holds cases under their positions in the run, in which they may come in any order.

    Of those that did not pass, and of those that did, it keeps the ones with the lowest positions; the former as they
    are, the latter without their texts.

    Args:
        rest: decides on all others.
    """

    def __init__(self, rest: Rest) -> None:
        self._rest = rest
        self._passed, self._not_passed = _Lowest(MOST_SHOWN), _Lowest(MOST_SHOWN)
        self._cases: dict[int, CaseResult] = {}

    def add(self, position: int, case: CaseResult) -> None:
        """One more case."""
        passed = case.status == "passed"
        too_many = (self._passed if passed else self._not_passed).offer(position)
        if too_many == position:
            self._set(position, self._rest(case))
            return
        self._cases[position] = without_texts(case) if passed else case
        if too_many is not None:
            self._set(too_many, self._rest(self._cases.pop(too_many)))

    def cases(self, positions: Iterable[int]) -> list[CaseResult]:
        """What is kept of the cases at these positions."""
        return [self._cases[position] for position in positions if position in self._cases]

    def _set(self, position: int, case: CaseResult | None) -> None:
        if case is not None:
            self._cases[position] = case


class Outlines:
    """What reports count by looking at every case, if none of them lists it.

    These are the cases that did not pass or that somebody named, the metrics that broke without deciding their case,
    and how many iterations there are.

    Args:
        named: whether somebody wants to know of a case, whatever became of it.
    """

    def __init__(self, named: Callable[[CaseResult], bool]) -> None:
        self._named = named
        self._iterations: set[int] = set()

    def __call__(self, case: CaseResult) -> CaseResult | None:
        """As much of the case as is needed; ``None`` if that is nothing."""
        number = len(case.iterations)
        if number not in self._iterations or _has_broken_score(case):
            self._iterations.add(number)
            return without_texts(case)
        return outline(case) if case.status != "passed" or self._named(case) else None


def _has_broken_score(case: CaseResult) -> bool:
    for iteration in case.iterations:
        for turn in iteration.turns:
            for score in turn.scores:
                if score.status == "error":
                    return True
    return False


class _Lowest:
    """The lowest of some numbers."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._negative: list[int] = []

    def offer(self, number: int) -> int | None:
        """One more; the one for which there is no room any more, if there is such a one."""
        if len(self._negative) < self._most:
            heapq.heappush(self._negative, -number)
            return None
        return -heapq.heappushpop(self._negative, -number)
