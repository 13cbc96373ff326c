"""What a comparison excludes, and what it would find."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from agenteval.compare.regression.mean_proof import mean_over_runs
from agenteval.compare.regression.runs import Integers, Numbers, Run
from agenteval.compare.regression.settings import GateSettings
from agenteval.core.statistics import ROUNDING, student_t_quantile

_CONFIDENCE = 0.95
# Detectable drop in standard errors of the mean, with a power of 80 %, by number of runs in the pool. From a normal
# approximation of the whole procedure with three iterations.
_POOL_RUNS = (1, 2, 3, 5, 10)
_DETECTABLE = (3.55, 3.1, 2.95, 2.84, 2.78)


def no_worse_than(first: Run, pool: Sequence[Run], metric: int, step: float, unit_of: Integers) -> float | None:
    """Return the largest drop that the first run does not exclude, one-sided 95 %, inside 0..1.

    max(0, −(D − t SE)) with SE² = (Σ E_c² + 2 (step/k)²) C / (C − 1) / N² over N cases in C units (Miller 2024, with
    a guard for suites without any difference).

    Returns:
        ``None`` if no case is in the first run and in the pool.
    """
    change = first.means[metric] - mean_over_runs(list(pool), metric)
    compared = ~np.isnan(change)
    if not compared.any():
        return None
    differences, cases = change[compared], int(compared.sum())
    iterations = int(first.asked[metric][compared].min())
    deviations = _per_unit(differences - differences.mean(), unit_of[compared])
    units = len(deviations)
    spread = float(deviations @ deviations) + 2 * (step / iterations) ** 2
    error = math.sqrt(spread * units / max(units - 1, 1)) / cases
    lowest = float(differences.mean()) - student_t_quantile(_CONFIDENCE, max(units - 1, 1)) * error
    return min(1.0, max(0.0, -lowest))


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


def _per_unit(values: Numbers, unit_of: Integers) -> Numbers:
    """Return the sums of a value per case over each unit."""
    numbers = np.unique(unit_of, return_inverse=True)[1]
    return np.bincount(numbers, values).astype(np.float64, copy=False)
