"""What a comparison excludes, and what it would find."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agenteval.compare.regression.mean_proof import mean_over_runs
from agenteval.compare.regression.model import FinerBound
from agenteval.compare.regression.runs import Integers, Numbers, Run
from agenteval.compare.regression.settings import GateSettings
from agenteval.core.statistics import ROUNDING, student_t_quantile

_CONFIDENCE = 0.95
# More iterations of each case are too expensive to be advised.
_MOST_ITERATIONS = 20
_MANY_RUNS = 1000
# Detectable drop in standard errors of the mean, with a power of 80 %, by number of runs in the pool. From a normal
# approximation of the whole procedure with three iterations.
_POOL_RUNS = (1, 2, 3, 5, 10)
_DETECTABLE = (3.55, 3.1, 2.95, 2.84, 2.78)


@dataclass(frozen=True)
class Difference:
    """The difference between the first run and the pool in one metric, over the cases of both.

    Attributes:
        step: smallest possible difference of two scores.
    """

    mean: float
    squares: float
    step: float
    iterations: int
    cases: int
    units: int

    @property
    def bound(self) -> float:
        """The largest drop that is not excluded, one-sided 95 %, inside 0..1."""
        return self.bound_at(_CONFIDENCE)

    def bound_at(self, confidence: float) -> float:
        """Return the largest drop, inside 0..1, that is not excluded with a one-sided confidence: −(D − t SE)."""
        return min(1.0, max(0.0, self._margin(self.iterations, confidence) - self.mean))

    def finer(self, tolerance: float) -> FinerBound | None:
        """Return the fewest iterations that would exclude a drop of more than ``tolerance``, if nothing changed.

        The deviations are taken as those of iterations, so that their variance falls as 1 / iterations, which holds
        once the runs of the pool have as many.

        Returns:
            ``None`` if the first run excludes it, and if no reasonable number of iterations would.
        """
        if self.bound <= tolerance:
            return None
        for iterations in range(self.iterations + 1, _MOST_ITERATIONS + 1):
            if (margin := self._margin(iterations)) <= tolerance:
                return FinerBound(iterations, margin)
        return None

    def _margin(self, iterations: int, confidence: float = _CONFIDENCE) -> float:
        """Return t SE for a number of iterations.

        SE² = (Σ E_c² + 2 (step/k)²) C / (C − 1) / N² over N cases in C units (Miller 2024, with a guard for suites
        without any difference).
        """
        freedom = max(self.units - 1, 1)
        spread = self.squares * self.iterations / iterations + 2 * (self.step / iterations) ** 2
        return student_t_quantile(confidence, freedom) * math.sqrt(spread * self.units / freedom) / self.cases


def difference_to_pool(
    first: Run, pool: Sequence[Run], metric: int, step: float, unit_of: Integers
) -> Difference | None:
    """Return the difference between the first run and the pool; ``None`` if no case is in both."""
    change = first.means[metric] - mean_over_runs(list(pool), metric)
    compared = ~np.isnan(change)
    if not compared.any():
        return None
    differences = change[compared]
    deviations = _per_unit(differences - differences.mean(), unit_of[compared])
    return Difference(
        mean=float(differences.mean()),
        squares=float(deviations @ deviations),
        step=step,
        iterations=int(first.asked[metric][compared].min()),
        cases=int(compared.sum()),
        units=len(deviations),
    )


def detectable_drop(
    first: Run | None, pool: Sequence[Run], metric: int, unit_of: Integers, settings: GateSettings
) -> float | None:
    """Return the drop of the mean that the gate finds with a probability of 80 %, at least ``min_effect``.

    A multiple of s = sqrt(Σ var) / N, with the variance of each unit between the runs of the pool; with one run, half
    of the squared difference between it and the first run.

    Returns:
        ``None`` if nothing varies, or without runs to compare.
    """
    means = np.column_stack([run.means[metric] for run in pool]) if pool else np.zeros((0, 0))
    if len(pool) == 1 and first is not None:
        means = np.column_stack([means, first.means[metric]])
    if means.shape[1] < 2:
        return None
    complete = ~np.isnan(means).any(axis=1)
    if not complete.any():
        return None
    parts = np.column_stack([_per_unit(column, unit_of[complete]) for column in means[complete].T])
    deviation = math.sqrt(float(parts.var(axis=1, ddof=1).sum())) / int(complete.sum())
    if deviation <= ROUNDING:
        return None
    drop = detectable_multiple(len(pool)) * deviation
    return min(1.0, max(settings.min_effect, drop))


def detectable_multiple(runs: int) -> float:
    """Return the detectable drop in standard deviations of a run's mean, by the number of runs in the pool."""
    return float(np.interp(runs, _POOL_RUNS, _DETECTABLE))


@dataclass(frozen=True)
class Blind:
    """A suite and a pool that are too small for a suspicion about a mean.

    Args:
        units: independent units: clusters, and cases without a cluster.
        least_runs: the fewest runs in the pool with which a mean can be suspicious.
    """

    units: int
    runs: int
    least_runs: int


def blind(units: int, runs: int, settings: GateSettings) -> Blind | None:
    """Return why no first run can raise a suspicion about a mean; ``None`` if one can."""
    if not units or not runs or _can_be_suspicious(units, runs, settings):
        return None
    least = next(number for number in range(1, _MANY_RUNS) if _can_be_suspicious(units, number, settings))
    return Blind(units, runs, least)


def _can_be_suspicious(units: int, runs: int, settings: GateSettings) -> bool:
    """Return whether the smallest p of a screen reaches its limit.

    The smallest mid-p of a test with n labelings is 1 / 2n; each unit has one label per run.
    """
    newest = 0.5 ** (units + 1)
    if runs == 1:
        return newest <= settings.screen_epoch + settings.screen_newest
    return 0.5 * (1 / (runs + 1)) ** units <= settings.screen_epoch or newest <= settings.screen_newest


def _per_unit(values: Numbers, unit_of: Integers) -> Numbers:
    """Return the sums of a value per case over each unit."""
    numbers = np.searchsorted(sorted(set(unit_of.tolist())), unit_of)
    return np.bincount(numbers, values).astype(np.float64, copy=False)


def distinct(unit_of: Integers) -> int:
    """Return the number of units; `numpy.unique` imports `numpy.ma`, which takes longer than a small decision."""
    return len(set(unit_of.tolist()))
