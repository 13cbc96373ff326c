"""Cases with very long texts: in memory they are shortened, and in full they stay where the journal has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agenteval.results.archive import InMemory
from agenteval.results.model import CaseResult, SuiteResult, TurnResult
from agenteval.run.journal.journal import case_text, parsed

# A case whose JSON is longer (characters) is shortened.
_LONG = 200_000
# Of each text of such a case stays so much, which is more than a comment or a summary shows.
_SHOWN = 4000


class LongCases(InMemory):
    """Gives the cases of a run in full.

    Args:
        journal: where they are written.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._places: dict[str, int] = {}

    def keep(self, case: CaseResult, text: str, place: int) -> CaseResult:
        """As much of a case as is held in memory.

        Args:
            case: in full.
            text: the same as JSON.
            place: byte of the journal where its line begins.
        """
        kept = held(case, text)
        if kept is not case:
            self._places[case.id] = place
        return kept

    def cases(self, suite: SuiteResult) -> Iterator[CaseResult]:
        """Every case of a suite in full."""
        for case in suite.cases:
            place = self._places.get(case.id)
            yield case if place is None else self._in_full(suite.path, place)

    def _in_full(self, suite: str, place: int) -> CaseResult:
        with self._journal.open("rb") as lines:
            return parsed(CaseResult, case_text(lines, suite, place))


def held(case: CaseResult, text: str) -> CaseResult:
    """As much of a case as is held in memory; `text` is the same as JSON."""
    return case if len(text) <= _LONG else _shortened(case)


def _shortened(case: CaseResult) -> CaseResult:
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


def _beginning(text: str | None) -> str | None:
    return text if text is None or len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
