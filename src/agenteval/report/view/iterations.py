"""The iterations of a case, those that are alike only once."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.report.view.view import count
from agenteval.results.case import CaseResult, IterationResult

_Essence = tuple[object, ...]


def distinct_iterations(case: CaseResult) -> Iterator[tuple[IterationResult, str]]:
    """Yield the first of all iterations that are alike, and which they are in words.

    Iterations are alike if questions, answers, tool calls and scores are the same. Times, tokens and reasons may
    differ. The words are empty for a case with one iteration.
    """
    groups: dict[_Essence, list[IterationResult]] = {}
    for iteration in case.iterations:
        groups.setdefault(_essence(iteration), []).append(iteration)
    total = len(case.iterations)
    for group in groups.values():
        yield group[0], _words([iteration.index + 1 for iteration in group], total)


def _words(numbers: list[int], total: int) -> str:
    if total == 1:
        return ""
    if len(numbers) == total:
        return f"{count(total, 'iteration')}, all alike"
    if len(numbers) == 1:
        return f"iteration {numbers[0]} of {total}"
    *first, last = numbers
    return f"iterations {', '.join(map(str, first))} and {last} of {total}, alike"


def _essence(iteration: IterationResult) -> _Essence:
    return (
        iteration.status,
        tuple(
            (
                turn.input,
                turn.response,
                turn.error,
                tuple((call.name, repr(call.args), repr(call.result), call.error) for call in turn.tool_calls),
                tuple((score.id, score.score, score.passed, score.status) for score in turn.scores),
            )
            for turn in iteration.turns
        ),
    )
