"""Decides which finished cases stay in memory, and how much of each; the journal contains every case in full."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Iterable
from typing import Protocol

from agenteval.report.causes import alike
from agenteval.report.limits import SUMMARY_LEVELS
from agenteval.results.case import CaseResult, IterationResult, Score, TurnResult
from agenteval.results.masking import whole_answer
from agenteval.results.store import outline, without_texts

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
    report can list. Of other cases that did not pass it keeps the first of all that tell the same, and of the rest
    what tells their cause, as long as not too many tell something else. Of further cases that reports count it keeps
    parts: the scores of cases with a failed metric and of one case for each number of iterations; of other ones, and
    of those that the configuration names, name and result.
    """

    def __init__(self, is_quarantined_by_name: Callable[[CaseResult], bool]) -> None:
        self._is_quarantined_by_name = is_quarantined_by_name
        self._iterations: set[int] = set()
        self._passed, self._not_passed = _Lowest(MOST_SHOWN), _Lowest(MOST_SHOWN)
        self._cases: dict[int, CaseResult] = {}
        # What went wrong in iterations, each once: in a run that fails as a whole, all cases tell the same. With the
        # first position that tells it, whose case is whole. Both by the digest of what is told.
        self._wrong: dict[bytes, list[IterationResult]] = {}
        self._first: dict[bytes, int] = {}

    def add(self, position: int, case: CaseResult) -> None:
        """Add a finished case."""
        first = self._passed if case.status == "passed" else self._not_passed
        dropped = first.offer(position)
        if dropped != position:
            self._cases[position] = case
        if dropped is not None:
            rest = self._cases.pop(dropped, case)
            if rest.status == "passed" or not self._keep_told(dropped, rest):
                self._keep_part(dropped, rest)

    def cases(self, positions: Iterable[int]) -> list[CaseResult]:
        """Return the kept cases, or outlines, at these positions."""
        return [self._cases[position] for position in positions if position in self._cases]

    def _keep_told(self, position: int, case: CaseResult) -> bool:
        """Keep what reports need to find the cause of a case that did not pass: its answers, scores and errors.

        The first case that tells something stays whole, as the example of those that tell the same. Without the
        answers if too many differ; return whether not too many still do.
        """
        told = [_with_turns(iteration, _told_turn) for iteration in case.iterations]
        if self._keep_alike(position, case, told, MOST_SHOWN):
            return True
        causes = [_with_turns(iteration, _without_answer) for iteration in told]
        return self._keep_alike(position, case, causes, 2 * MOST_SHOWN)

    def _keep_alike(self, position: int, case: CaseResult, told: list[IterationResult], most: int) -> bool:
        """Keep a case with what it tells, whole if it is the first; return false if too many tell something else."""
        text = b"".join(iteration.model_dump_json().encode("utf-8", "backslashreplace") for iteration in told)
        key = hashlib.blake2b(text, digest_size=16).digest()
        first = self._first.get(key)
        if first is None and len(self._first) >= most:
            return False
        self._iterations.add(len(case.iterations))
        if first is None:
            self._first[key], self._cases[position] = position, case
            return True
        if position < first:
            self._first[key], self._cases[position] = position, case
            position, case = first, self._cases[first]
        self._cases[position] = case.model_copy(update={"iterations": self._wrong.setdefault(key, told)})
        return True

    def _keep_part(self, position: int, case: CaseResult) -> None:
        number = len(case.iterations)
        has_broken_score = any(score.status == "error" for score in case.scores)
        if number not in self._iterations or has_broken_score:
            self._iterations.add(number)
            self._cases[position] = without_texts(case)
        elif case.status != "passed" or self._is_quarantined_by_name(case):
            self._cases[position] = outline(case)


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
    """Return the case, with shortened texts if it is too long to stay in memory."""
    if len(text) <= _LONGEST_CASE:
        return case
    iterations = [
        iteration.model_copy(update={"turns": [_shortened_turn(turn) for turn in iteration.turns]})
        for iteration in case.iterations
    ]
    return case.model_copy(update={"iterations": iterations})


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


def _told_turn(turn: TurnResult) -> TurnResult:
    """Return a turn without what differs between cases with the same cause, and with shortened texts."""
    whole, short = whole_answer(turn), _shortened_turn(turn)
    return short.model_copy(
        update={
            "input": "…",
            "ground_truth": None,
            "latency_ms": None,
            "usage": None,
            "tool_calls": [],
            "scores": [_told_score(score) for score in short.scores],
            "shortened": {"response": whole} if whole else {},
        }
    )


def _with_turns(iteration: IterationResult, change: Callable[[TurnResult], TurnResult]) -> IterationResult:
    return iteration.model_copy(update={"turns": [change(turn) for turn in iteration.turns]})


def _without_answer(turn: TurnResult) -> TurnResult:
    return turn.model_copy(update={"response": None, "shortened": {}})


def _told_score(score: Score) -> Score:
    reason = None if score.reason is None else alike(score.reason)
    return score.model_copy(update={"reason": reason, "duration_ms": None, "cost_usd": None})


def _beginning(text: str | None) -> str | None:
    return text if text is None or len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
