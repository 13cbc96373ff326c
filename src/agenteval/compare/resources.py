"""Compares the latency, tokens and cost of answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Literal

from agenteval.compare.policy import ComparePolicy
from agenteval.results.case import CaseResult, TurnResult
from agenteval.results.comparison import ComparedResource
from agenteval.results.model import Results

_Name = Literal["latency_ms", "tokens", "cost_usd"]
# An increase by exactly the allowed share is allowed.
_ROUNDING = 1e-9


def compare_resources(
    current: Results, baseline: Results, case_ids: Collection[str], policy: ComparePolicy
) -> list[ComparedResource]:
    """Return the means per answer over the cases of both runs; resources that neither run reports are omitted."""
    before = {case.id: case for _, case in baseline.cases() if case.id in case_ids}
    pairs = [(before[case.id], case) for _, case in current.cases() if case.id in before]
    measures: tuple[tuple[_Name, Callable[[TurnResult], float | None], float | None], ...] = (
        ("latency_ms", lambda turn: turn.latency_ms, policy.max_latency_increase),
        ("tokens", _tokens, None),
        ("cost_usd", lambda turn: turn.usage.cost_usd if turn.usage else None, policy.max_cost_increase),
    )
    compared = (_compare(name, measure, allowed, pairs) for name, measure, allowed in measures)
    return [item for item in compared if item is not None]


def _compare(
    name: _Name,
    measure: Callable[[TurnResult], float | None],
    allowed: float | None,
    pairs: Iterable[tuple[CaseResult, CaseResult]],
) -> ComparedResource | None:
    means = [(_mean(old, measure), _mean(new, measure)) for old, new in pairs]
    both = [(old, new) for old, new in means if old is not None and new is not None]
    if not both:
        return None
    before = sum(old for old, _ in both) / len(both)
    after = sum(new for _, new in both) / len(both)
    return ComparedResource(
        name=name,
        n=len(both),
        baseline=before,
        current=after,
        change=(after - before) / before if before else None,
        allowed=allowed,
        # If the baseline is zero, any increase exceeds every allowed share.
        exceeded=allowed is not None and after > before * (1 + allowed + _ROUNDING),
    )


def _mean(case: CaseResult, measure: Callable[[TurnResult], float | None]) -> float | None:
    values = [value for turn in case.turns if turn.error is None and (value := measure(turn)) is not None]
    return sum(values) / len(values) if values else None


def _tokens(turn: TurnResult) -> float | None:
    usage = turn.usage
    if usage is None or (usage.input_tokens is None and usage.output_tokens is None):
        return None
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)
