"""The interval of a difference of means that belongs to a run-label test."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from agenteval.compare.regression.labels import (
    Labelled,
    Seed,
    contribution_tables,
    label_sums,
    labelled,
    mid_p,
    moving_units,
    random_sums,
)
from agenteval.compare.regression.runs import Integers, Numbers, Run
from agenteval.compare.regression.settings import GateSettings
from agenteval.core.statistics import ROUNDING

_HALVINGS = 24


class Inversion:
    """A run-label test that can be made again with all scores of one side shifted, with the same labels.

    Args:
        own: the runs of the agent under test.
        seed: seed of the test's random labels.
    """

    def __init__(
        self, own: Sequence[Run], other: Sequence[Run], unit_of: Integers, seed: Seed, settings: GateSettings
    ) -> None:
        tables = contribution_tables([run.means for run in own], [run.means for run in other], unit_of)
        ones = [[np.where(np.isnan(mean), np.nan, 1.0) for mean in run.means] for run in own]
        zeros = [[np.where(np.isnan(mean), np.nan, 0.0) for mean in run.means] for run in other]
        shifts = contribution_tables(ones, zeros, unit_of)
        self._metrics = len(tables)
        both = [*tables, *shifts]
        possible = np.all([~np.isnan(table) for table in both], axis=0)
        moving = moving_units(tables)
        # Units without a difference do not matter to the test itself, but they do once they are shifted.
        resting = moving_units(shifts) & ~moving
        parts = (labelled(both, possible, moving), labelled(both, possible, resting))
        self._observed = parts[0].observed + parts[1].observed
        self._sums, self._extra = self._draw(parts[0], parts[1], seed, settings)
        self._variances = [
            sum((_quadratic(part, metric, metric + self._metrics) for part in parts), np.zeros(3))
            for metric in range(self._metrics)
        ]
        scales = [self._scale(metric, 0.0) for metric in range(self._metrics)]
        studentised = self._sums[:, : self._metrics] / scales
        self._least = {sign: _TwoLeast.of(sign * studentised) for sign in (1.0, -1.0)}

    def _draw(self, moving: Labelled, resting: Labelled, seed: Seed, settings: GateSettings) -> tuple[Numbers, int]:
        sums, extra = np.zeros((1, 2 * self._metrics)), 0
        if len(moving.units):
            sums = np.concatenate(list(label_sums(moving, seed, settings)))
            extra = int(moving.log_labelings > math.log(settings.exact_limit))
        if not len(resting.units):
            return sums, extra
        # Every enumerated labeling is repeated equally often, so that p without a shift stays the same.
        sums = np.tile(sums, (max(1, -(-settings.draws // len(sums))), 1))
        return sums + np.concatenate(list(random_sums(resting, np.random.default_rng((*seed, 1)), len(sums)))), extra

    def interval(self, metric: int, level: float) -> tuple[float, float]:
        """Return the differences that neither one-sided test at ``level`` rejects, inside −1..1.

        With a level below one half, the upper end is below 0 exactly if the p of a drop is at most ``level``; the
        lower end is above 0 exactly if the p of a rise is.
        """
        upper = _last_above(lambda shift: self._p(metric, shift, 1.0), level)
        lower = -_last_above(lambda shift: self._p(metric, -shift, -1.0), level)
        # Without any variation both ends are the difference, but for the precision of the search.
        return min(lower, upper), upper

    def _p(self, metric: int, shift: float, sign: float) -> float:
        """Return the adjusted p of a drop (sign 1) or rise (−1) after ``shift`` is subtracted from the own runs."""
        factor = sign / self._scale(metric, shift)
        shifted = factor * (self._sums[:, metric] - shift * self._sums[:, metric + self._metrics])
        observed = factor * (self._observed[metric] - shift * self._observed[metric + self._metrics])
        sums = np.minimum(shifted, self._least[sign].without(metric))
        return float(mid_p(sums, np.array([observed]), self._extra)[0])

    def _scale(self, metric: int, shift: float) -> float:
        """Return the standard deviation of a metric's sums after a shift; infinite if nothing varies."""
        plain, cross, square = self._variances[metric]
        variance = plain - 2 * shift * cross + shift * shift * square
        return math.sqrt(variance) if variance > ROUNDING**2 else math.inf


@dataclass(frozen=True)
class _TwoLeast:
    """The two smallest values of each row, so that the smallest one without any column needs no second search.

    Args:
        following: the smallest value of the other columns; infinite without any.
    """

    column: Integers
    least: Numbers
    following: Numbers

    @classmethod
    def of(cls, values: Numbers) -> _TwoLeast:
        """Find them in an array of rows by columns."""
        rows, column = np.arange(len(values)), values.argmin(axis=1)
        others = values.copy()
        others[rows, column] = np.inf
        return cls(column, values[rows, column], others.min(axis=1))

    def without(self, column: int) -> Numbers:
        """Return the smallest value of each row outside of a column."""
        return np.where(self.column == column, self.following, self.least)


def _quadratic(part: Labelled, value: int, shift: int) -> Numbers:
    """Return var(value), cov(value, shift) and var(shift)."""
    if not len(part.units):
        return np.zeros(3)
    return np.array([part.covariance(value, value), part.covariance(value, shift), part.covariance(shift, shift)])


def _last_above(p: Callable[[float], float], level: float) -> float:
    """Return the largest value in −1..1 with p above ``level``, where p falls; on the side of 0 that p(0) decides."""
    is_rejected = p(0.0) <= level + ROUNDING
    low, high = (-1.0, 0.0) if is_rejected else (0.0, 1.0)
    if not is_rejected and p(high) > level + ROUNDING:
        return high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if p(middle) <= level + ROUNDING:
            high = middle
        else:
            low = middle
    return low
