"""Answers whose scores become one. Metrics that ``agenteval.yaml`` adds decide besides, without a weight."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from agenteval.results.analysis.aggregate import final_score
from agenteval.results.model import CaseStatus, TurnResult
from agenteval.results.rollup import aggregated_status, iteration_status, turn_means
from agenteval.suite.evaluation import Aggregate
from agenteval.suite.model import MetricConfig


def aggregated(
    turns: Sequence[TurnResult], aggregate: Aggregate | None, metrics: Iterable[MetricConfig]
) -> tuple[CaseStatus, float | None]:
    """The status and the final score of one pass through a case.

    Args:
        turns: with all their scores.
        aggregate: how scores become one; ``None``: they do not.
        metrics: that scored the turns.
    """
    added = {metric.id: metric for metric in metrics if metric.requested_by == "config"}
    weighed = _only(turns, lambda name: name not in added) if added else turns
    final = final_score(turn_means(weighed), aggregate) if aggregate else None
    status = aggregated_status(weighed, final, aggregate.threshold if aggregate else None)
    if not added or status in {"error", "failed"}:
        return status, final
    gating = _only(turns, lambda name: name in added and added[name].gating)
    broken = {(turn.index, score.id) for turn in gating for score in turn.scores if score.status == "error"}
    besides = iteration_status(gating, broken)
    return (besides if besides in {"error", "failed"} else status), final


def _only(turns: Iterable[TurnResult], wanted: Callable[[str], bool]) -> list[TurnResult]:
    """The turns with some of their scores."""
    return [
        turn.model_copy(update={"scores": [score for score in turn.scores if wanted(score.id)]}) for turn in turns
    ]
