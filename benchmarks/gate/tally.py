"""What is counted: named measures over many replications."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

#: What one replication measured: no value, one, or several per name.
Measures = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Figure:
    """The mean of a measure.

    Args:
        count: number of values.
        total: their sum.
        squares: the sum of their squares.
    """

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    def __add__(self, other: Figure) -> Figure:
        return Figure(self.count + other.count, self.total + other.total, self.squares + other.squares)

    @property
    def mean(self) -> float:
        """The mean; NaN without values."""
        return self.total / self.count if self.count else math.nan

    @property
    def is_share(self) -> bool:
        """Whether all values were 0 or 1."""
        return self.squares == self.total

    @property
    def variance(self) -> float:
        """The variance of the values; 0 with fewer than two."""
        if self.count < 2:
            return 0.0
        return max(0.0, (self.squares - self.total**2 / self.count) / (self.count - 1))

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return math.sqrt(self.variance / self.count) if self.count else math.nan


@dataclass(frozen=True)
class Tally:
    """The figures of a cell by name."""

    figures: Mapping[str, Figure] = field(default_factory=dict)

    def __add__(self, other: Tally) -> Tally:
        names = dict.fromkeys([*self.figures, *other.figures])
        return Tally({name: self[name] + other[name] for name in names})

    def __getitem__(self, name: str) -> Figure:
        return self.figures.get(name, Figure())

    @classmethod
    def of(cls, measures: Measures) -> Tally:
        """Return the tally of one replication."""
        return cls(
            {
                name: Figure(len(values), math.fsum(values), math.fsum(value * value for value in values))
                for name, values in measures.items()
            }
        )
