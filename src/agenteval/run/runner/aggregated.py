"""Aggregates the scores of a suite's metrics into one; added metrics must pass as well, but have no weight."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from agenteval.results.analysis.aggregate import final_score, has_weight, passes
from agenteval.results.case import CaseStatus, TurnResult
from agenteval.results.rollup import aggregated_status, iteration_status, turn_means
from agenteval.suite.evaluation import Aggregate
from agenteval.suite.model import MetricConfig


def aggregated(
    turns: Sequence[TurnResult], aggregate: Aggregate, metrics: Iterable[MetricConfig]
) -> tuple[CaseStatus, float | None]:
    """Return the status and the final score of one iteration of a case.

    Without the scores of judges that were not called there is no final score. The iteration failed nevertheless if no
    scores of these judges could reach the threshold.

    Args:
        turns: the turns with all scores.
        aggregate: how to combine the scores.
        metrics: the metrics that scored the turns.
    """
    added = {metric.id: metric for metric in metrics if metric.requested_by == "config"}
    weighed = _only(turns, lambda name: name not in added and has_weight(name, aggregate))
    final = None if _is_incomplete(weighed) else final_score(turn_means(weighed), aggregate)
    status = aggregated_status(weighed, final, aggregate.threshold)
    if status == "skipped" and passes(_highest_possible(weighed, aggregate), aggregate.threshold) is False:
        status = "failed"
    if not added or status in {"error", "failed"}:
        return status, final
    gating = _only(turns, lambda name: name in added and added[name].gating)
    broken = {(turn.index, score.id) for turn in gating for score in turn.scores if score.status == "error"}
    besides = iteration_status(gating, broken)
    return (besides if besides in {"error", "failed"} else status), final


def _is_incomplete(weighed: Iterable[TurnResult]) -> bool:
    """Return whether a score is missing because of an error or a limit, so that the others decide nothing."""
    return any(score.status == "error" or score.not_asked for turn in weighed for score in turn.scores)


def _highest_possible(weighed: Iterable[TurnResult], aggregate: Aggregate) -> float | None:
    """Return the final score if every judge that was not called had given the highest score."""
    best = [
        turn.model_copy(
            update={
                "scores": [
                    score.model_copy(update={"score": 1.0}) if score.not_asked else score for score in turn.scores
                ]
            }
        )
        for turn in weighed
    ]
    return final_score(turn_means(best), aggregate)


def _only(turns: Iterable[TurnResult], wanted: Callable[[str], bool]) -> list[TurnResult]:
    """Return the turns with only the scores of the wanted metrics."""
    return [
        turn.model_copy(update={"scores": [score for score in turn.scores if wanted(score.id)]}) for turn in turns
    ]
