"""Decides which finished cases stay in memory, and how much of each; the journal holds all of them in full."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import Protocol

from agenteval.report.size_limits import SUMMARY_LEVELS
from agenteval.results.archive import outline, without_texts
from agenteval.results.model import CaseResult, TurnResult

#: No report lists more cases.
MOST_SHOWN = max(level.max_rows for level in SUMMARY_LEVELS)

# A case whose JSON is longer (characters) stays in memory with shortened texts.
_LONGEST_CASE = 200_000
# Characters of each shortened text: more than a comment or a summary shows.
_LONGEST_TEXT = 4000


class Retention(Protocol):
    """The cases in memory, under their positions in the run."""

    def add(self, position: int, case: CaseResult) -> None:
        """Add a finished case."""
        ...

    def cases(self, positions: Iterable[int]) -> list[CaseResult]:
        """Return the cases that are kept of these positions, in this order."""
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
    """Keeps what reports show.

    These are the first cases that did not pass and the first that passed, as many of each as a report can list, and
    outlines of those that reports count: cases that did not pass or that the configuration names, cases with a metric
    that broke, and one case for each number of iterations.

    Args:
        named: whether the configuration names a case.
    """

    def __init__(self, named: Callable[[CaseResult], bool]) -> None:
        self._named = named
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
        """Return what is kept of the cases at these positions."""
        return [self._cases[position] for position in positions if position in self._cases]

    def _outline(self, case: CaseResult) -> CaseResult | None:
        """Return as much of a case as reports count; ``None`` if that is nothing."""
        number = len(case.iterations)
        if number not in self._iterations or _has_broken_score(case):
            self._iterations.add(number)
            return without_texts(case)
        return outline(case) if case.status != "passed" or self._named(case) else None


class _Lowest:
    """The lowest of some numbers."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._negative: list[int] = []

    def offer(self, number: int) -> int | None:
        """Add a number; return the highest one if there are too many now."""
        if len(self._negative) < self._most:
            heapq.heappush(self._negative, -number)
            return None
        return -heapq.heappushpop(self._negative, -number)


def within_limit(case: CaseResult, text: str) -> CaseResult:
    """Return a case as it may stay in memory: with shortened texts if it is very long.

    Args:
        case: in full.
        text: the same as JSON.
    """
    if len(text) <= _LONGEST_CASE:
        return case
    iterations = [
        iteration.model_copy(update={"turns": [_shortened_turn(turn) for turn in iteration.turns]})
        for iteration in case.iterations
    ]
    return case.model_copy(update={"iterations": iterations})


def _has_broken_score(case: CaseResult) -> bool:
    for iteration in case.iterations:
        for turn in iteration.turns:
            for score in turn.scores:
                if score.status == "error":
                    return True
    return False


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
