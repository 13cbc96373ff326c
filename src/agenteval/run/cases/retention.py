"""Decides which finished cases stay in memory, and how much of each; the journal contains every case in full."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import Protocol

from agenteval.report.size_limits import SUMMARY_LEVELS
from agenteval.results.archive import outline, without_texts
from agenteval.results.case import CaseResult, TurnResult

#: No report lists more cases.
MOST_SHOWN = max(level.max_rows for level in SUMMARY_LEVELS)

# A case whose JSON is longer (characters) stays in memory with shortened texts.
_LONGEST_CASE = 200_000
# Characters of each shortened text: more than a comment or a summary shows.
_LONGEST_TEXT = 4000


class Retention(Protocol):
    """A rule that decides which cases stay in memory; a case is identified by its position in the run."""

    def add(self, position: int, case: CaseResult) -> None:
        """Add a finished case."""
        ...

    def cases(self, positions: Iterable[int]) -> list[CaseResult]:
        """Return the kept cases among these positions, in this order."""
        ...


class KeepAll:
    """Keeps every case, for runs that are compared with a baseline."""

    def __init__(self) -> None:
        self._cases: dict[int, CaseResult] = {}

    def add(self, position: int, case: CaseResult) -> None:
        """Add a finished case."""
        self._cases[position] = case

    def cases(self, positions: Iterable[int]) -> list[CaseResult]:
        """Return the cases at these positions."""
        return [self._cases[position] for position in positions if position in self._cases]


class ShownOnly:
    """Keeps only what reports show, for runs without a baseline.

    Reports list the first cases that did not pass and the first that passed; the rule keeps as many of each as a
    report can list. Of other cases that reports count it keeps outlines: cases that did not pass or that the
    configuration names, cases with a failed metric, and one case for each number of iterations.

    Args:
        is_quarantined_by_name: returns whether the configuration names a case.
    """

    def __init__(self, is_quarantined_by_name: Callable[[CaseResult], bool]) -> None:
        self._is_quarantined_by_name = is_quarantined_by_name
        self._iterations: set[int] = set()
        self._passed, self._not_passed = _Lowest(MOST_SHOWN), _Lowest(MOST_SHOWN)
        self._cases: dict[int, CaseResult] = {}

    def add(self, position: int, case: CaseResult) -> None:
        """Add a finished case."""
        first = self._passed if case.status == "passed" else self._not_passed
        dropped = first.offer(position)
        if dropped != position:
            self._cases[position] = case
        if dropped is not None:
            rest = self._outline(self._cases.pop(dropped, case))
            if rest is not None:
                self._cases[dropped] = rest

    def cases(self, positions: Iterable[int]) -> list[CaseResult]:
        """Return the kept cases, or outlines, at these positions."""
        return [self._cases[position] for position in positions if position in self._cases]

    def _outline(self, case: CaseResult) -> CaseResult | None:
        """Return the parts of a case that reports count; ``None`` if they count nothing of it."""
        number = len(case.iterations)
        if number not in self._iterations or _has_broken_score(case):
            self._iterations.add(number)
            return without_texts(case)
        return outline(case) if case.status != "passed" or self._is_quarantined_by_name(case) else None


class _Lowest:
    """The lowest of the numbers that were offered, up to a maximum count."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._negative: list[int] = []

    def offer(self, number: int) -> int | None:
        """Add a number; return the highest one, removed, if the maximum count is exceeded."""
        if len(self._negative) < self._most:
            heapq.heappush(self._negative, -number)
            return None
        return -heapq.heappushpop(self._negative, -number)


def within_limit(case: CaseResult, text: str) -> CaseResult:
    """Return the case, with shortened texts if it is too long to stay in memory.

    Args:
        case: the complete case.
        text: the same case as JSON.
    """
    if len(text) <= _LONGEST_CASE:
        return case
    iterations = [
        iteration.model_copy(update={"turns": [_shortened_turn(turn) for turn in iteration.turns]})
        for iteration in case.iterations
    ]
    return case.model_copy(update={"iterations": iterations})


def _has_broken_score(case: CaseResult) -> bool:
    return any(score.status == "error" for score in case.scores)


def _shortened_turn(turn: TurnResult) -> TurnResult:
    scores = [
        score.model_copy(
            update={"reason": _beginning(score.reason), "error": _beginning(score.error), "details": None}
        )
        for score in turn.scores
    ]
    return turn.model_copy(
        update={
            "input": _beginning(turn.input),
            "ground_truth": _beginning(turn.ground_truth),
            "response": _beginning(turn.response),
            "error": _beginning(turn.error),
            "tool_calls": [call.model_copy(update={"args": None, "result": None}) for call in turn.tool_calls],
            "retrieval_context": [],
            "scores": scores,
        }
    )


def _beginning(text: str | None) -> str | None:
    return text if text is None or len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
