"""Count, mean and spread of values, independent of their order; groups can be combined."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Moments:
    """Count, mean and sum of squares of values.

    Attributes:
        count: number of values.
        mean: their mean, 0 without values.
        squares: Σ(value − mean)².
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
        ordered: the values, ascending, at least one.
        share: the share, 0..1.
    """
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])
