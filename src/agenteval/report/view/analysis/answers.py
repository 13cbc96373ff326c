"""Single answers: examples, and the table of all of them."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from agenteval.report.view.analysis.wording import time
from agenteval.report.view.parts import Item, State
from agenteval.report.view.view import number
from agenteval.results.analysis.answers import EvaluatedAnswer
from agenteval.results.analysis.personas import persona_of

AnswerStatus = Literal["passed", "failed", "skipped"]

#: Maximum number of answers in the table of the HTML report; browsers become slow with more.
MOST_ANSWERS = 2_000
_RANKS: dict[AnswerStatus, int] = {"failed": 0, "skipped": 1, "passed": 2}


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One answer in the table that readers filter and sort."""

    name: str
    persona: str
    iteration: int
    score: float | None
    duration_ms: float | None
    status: AnswerStatus
    reasons: tuple[str, ...]


def example(answer: EvaluatedAnswer, state: State) -> Item:
    """Return one answer with its score and the reasons for it."""
    details = (persona_of(answer), f"iteration {answer.order}", time(answer.duration_ms), answer.trace_id)
    facts = " · ".join(text for text in details if text)
    return Item(answer.name, number(answer.final_score), state, (facts, *_reasons(answer)))


def worst_first(answer: EvaluatedAnswer) -> tuple[Any, ...]:
    """Return a sort key, unique to an answer: answers without a score first, then the lowest score."""
    score = -1.0 if answer.final_score is None else answer.final_score
    return score, answer.name, answer.order, answer.trace_id, answer.case_id


def best_first(answer: EvaluatedAnswer) -> tuple[Any, ...]:
    """Return a sort key for the highest score first."""
    score, *rest = worst_first(answer)
    return -score, *rest


def answer_rows(answers: Iterable[EvaluatedAnswer]) -> tuple[AnswerRow, ...]:
    """Return the rows of the table: failed answers first, then those without a score, the worst of each first."""
    ordered = heapq.nsmallest(
        MOST_ANSWERS, answers, key=lambda answer: (_RANKS[_status(answer)], *worst_first(answer))
    )
    return tuple(
        AnswerRow(
            name=answer.name,
            persona=persona_of(answer),
            iteration=answer.order,
            score=answer.final_score,
            duration_ms=answer.duration_ms,
            status=_status(answer),
            reasons=tuple(_reasons(answer)),
        )
        for answer in ordered
    )


def _reasons(answer: EvaluatedAnswer) -> Iterator[str]:
    if not answer.success:
        yield "the agent gave no answer, or reported a failure"
    for name, reason in answer.reasons.items():
        score = answer.scores.get(name)
        yield f"{name}: {reason}" if score is None else f"{name} {number(score)}: {reason}"


def _status(answer: EvaluatedAnswer) -> AnswerStatus:
    if answer.passed is None:
        return "skipped"
    return "passed" if answer.passed else "failed"
