"""Trends of scores and latencies over the iterations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from agenteval.results.analysis.moments import Moments
from agenteval.results.analysis.outliers import Averaged

Direction = Literal["increasing", "decreasing", "stable"]
_TOLERANCE = 0.01


@dataclass(frozen=True, slots=True)
class Trend:
    """The trend of a mean.

    Attributes:
        slope: change per iteration, from the first to the last one; 0 for a single iteration.
        points: iteration and its mean, in order.
    """

    direction: Direction
    slope: float
    points: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Trends:
    """Trends of final scores and of latencies in ms; ``None`` without data."""

    scores: Trend | None
    durations: Trend | None


def find_trends(averages: Averaged) -> Trends:
    """Return the trends over the iterations, without outliers if the suite removes them."""
    return Trends(
        scores=trend((answer.order, answer.final_score) for answer in averages.scored),
        durations=relative_trend((answer.order, answer.duration_ms) for answer in averages.timed),
    )


def trend(values: Iterable[tuple[int, float | None]]) -> Trend | None:
    """Return the trend of scores: stable while the slope is within ±0.01 for each iteration."""
    points = _points(values)
    return _trend(points, _TOLERANCE) if points else None


def relative_trend(values: Iterable[tuple[int, float | None]]) -> Trend | None:
    """Return the trend of values: stable while the slope per iteration is within ±1 % of their mean."""
    points = _points(values)
    return _trend(points, _TOLERANCE * abs(Moments.of([mean for _, mean in points]).mean)) if points else None


def _points(values: Iterable[tuple[int, float | None]]) -> tuple[tuple[int, float], ...]:
    groups: dict[int, list[float]] = defaultdict(list)
    for iteration, value in values:
        if value is not None:
            groups[iteration].append(value)
    return tuple((iteration, Moments.of(groups[iteration]).mean) for iteration in sorted(groups))


def _trend(points: Sequence[tuple[int, float]], tolerance: float) -> Trend:
    (first, start), (last, end) = points[0], points[-1]
    slope = (end - start) / (last - first) if last != first else 0.0
    direction: Direction = "stable"
    if abs(slope) > tolerance:
        direction = "increasing" if slope > 0 else "decreasing"
    return Trend(direction, slope, tuple(points))
