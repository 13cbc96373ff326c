"""Moments and quantiles of values, confidence intervals, and tests of differences."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from statistics import NormalDist
from typing import Any

from agenteval.core.records import dataclass
from agenteval.core.statistics import ROUNDING, fisher_p, student_t_cdf, student_t_quantile

_NORMAL = NormalDist()
# Above this size the exact test takes seconds, and the normal approximation is as precise.
_MOST_EXACT = 20_000

Interval = tuple[float, float]


@dataclass(frozen=True)
class Moments:
    """Count, mean and sum of squares of values.

    Attributes:
        mean: their mean, 0 without values.
    """

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, values: Collection[float]) -> Moments:
        """Compute the moments of values. Sums are exact, so the order does not matter."""
        if not values:
            return cls()
        mean = math.fsum(values) / len(values)
        return cls(len(values), mean, math.fsum((value - mean) ** 2 for value in values))

    def __add__(self, other: Moments) -> Moments:
        """Combine two groups (Chan, Golub and LeVeque 1979)."""
        if not self.count or not other.count:
            return self if self.count else other
        count, apart = self.count + other.count, other.mean - self.mean
        return Moments(
            count=count,
            mean=self.mean + apart * other.count / count,
            squares=self.squares + other.squares + apart * apart * self.count * other.count / count,
        )

    @classmethod
    def of_stats(cls, stats: Mapping[str, Any]) -> Moments:
        """Return the moments from figures of a summary; without a deviation, which FluxLoop does not write, none."""
        average, deviation, count = stats["average"], stats["deviation"], stats["count"]
        if average is None or not count or (deviation is None and count > 1):
            return cls()
        return cls(count, average, (deviation or 0.0) ** 2 * (count - 1))

    @property
    def stats(self) -> dict[str, Any]:
        """The figures of a summary."""
        return {"average": self.average, "deviation": self.deviation, "count": self.count}

    @property
    def average(self) -> float | None:
        """The mean; ``None`` without values."""
        return self.mean if self.count else None

    @property
    def variance(self) -> float | None:
        """The sample variance, divided by count − 1; ``None`` for fewer than two values."""
        return self.squares / (self.count - 1) if self.count > 1 else None

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation; ``None`` for fewer than two values."""
        return None if self.variance is None else math.sqrt(self.variance)


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lies.

    Values in between are interpolated linearly (Hyndman and Fan 1996, definition 7).

    Args:
        share: the share, 0..1.
    """
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def wilson(successes: int, trials: int, confidence: float) -> Interval | None:
    """Return the score interval of a share (Wilson 1927, without continuity correction); ``None`` without trials."""
    if not trials:
        return None
    z = _NORMAL.inv_cdf(0.5 + confidence / 2)
    share, weight = successes / trials, z * z / trials
    middle = (share + weight / 2) / (1 + weight)
    margin = z * math.sqrt(share * (1 - share) / trials + weight / (4 * trials)) / (1 + weight)
    return max(0.0, middle - margin), min(1.0, middle + margin)


def t_interval(values: Moments, confidence: float) -> Interval | None:
    """Return Student's interval of a mean of scores, clipped to 0..1; ``None`` without spread."""
    deviation = values.deviation
    if deviation is None or deviation < ROUNDING:
        return None
    margin = student_t_quantile(0.5 + confidence / 2, values.count - 1) * deviation / math.sqrt(values.count)
    return max(0.0, values.mean - margin), min(1.0, values.mean + margin)


def share_p(successes: int, trials: int, other_successes: int, other_trials: int) -> float:
    """Return the two-sided p-value that two shares differ: twice the smaller tail of Fisher's exact test.

    Above 20,000 trials it is the pooled z test of two proportions.
    """
    if trials + other_trials > _MOST_EXACT:
        pooled = (successes + other_successes) / (trials + other_trials)
        error = math.sqrt(pooled * (1 - pooled) * (1 / trials + 1 / other_trials))
        difference = abs(successes / trials - other_successes / other_trials)
        return 2 * _NORMAL.cdf(-difference / error) if error else 1.0
    more = fisher_p(other_successes, other_trials, successes, trials)
    less = fisher_p(other_trials - other_successes, other_trials, trials - successes, trials)
    return min(1.0, 2 * min(more, less))


def welch_p(values: Moments, others: Moments) -> float | None:
    """Return the two-sided p-value that two means differ (Welch 1947); ``None`` without spread."""
    if values.variance is None or others.variance is None:
        return None
    errors = values.variance / values.count, others.variance / others.count
    error = sum(errors)
    if math.sqrt(error) < ROUNDING:
        return None
    freedom = error * error / (errors[0] ** 2 / (values.count - 1) + errors[1] ** 2 / (others.count - 1))
    return 2 * student_t_cdf(-abs(values.mean - others.mean) / math.sqrt(error), freedom)
