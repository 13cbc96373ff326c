"""Computes the final score of an answer from its scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agenteval.suite.evaluation import Aggregate

#: Scores closer than this are the same: weighted sums of floats miss their threshold by less.
ROUNDING = 1e-9


def final_score(scores: Mapping[str, float | None], aggregate: Aggregate) -> float | None:
    """Return the final score of one answer, 0..1; ``None`` if no weighted metric has a score.

    Args:
        scores: metric id → score, 0..1, or ``None`` if absent; an absent score has no weight.
        aggregate: the method and the weights. A metric without a weight weighs 1; a metric with a weight of 0 or less
            is ignored.
    """
    weighted = [
        (score, aggregate.weights.get(name, 1.0))
        for name, score in scores.items()
        if score is not None and has_weight(name, aggregate)
    ]
    if not weighted:
        return None
    if aggregate.method == "average":
        total = math.fsum(score for score, _ in weighted) / len(weighted)
    else:
        total = math.fsum(score * weight for score, weight in weighted) / math.fsum(weight for _, weight in weighted)
    return min(1.0, max(0.0, total))


def has_weight(name: str, aggregate: Aggregate) -> bool:
    """Return whether a metric counts in the final score."""
    return aggregate.weights.get(name, 1.0) > 0


def passes(score: float | None, threshold: float) -> bool | None:
    """Return whether a score reaches the threshold; ``None`` without a score."""
    return None if score is None else score >= threshold - ROUNDING
