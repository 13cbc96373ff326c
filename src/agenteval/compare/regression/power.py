"""What a comparison excludes, what it would find, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agenteval.compare.regression.mean_proof import mean_over_runs
from agenteval.compare.regression.model import Evidence
from agenteval.compare.regression.runs import Integers, Numbers, Run
from agenteval.compare.regression.settings import NAMED_SETTINGS, GateSettings
from agenteval.compare.regression.trial import start
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
    drop = float(np.interp(len(pool), _POOL_RUNS, _DETECTABLE)) * deviation
    return min(1.0, max(settings.min_effect, drop))


def _per_unit(values: Numbers, unit_of: Integers) -> Numbers:
    """Return the sums of a value per case over each unit."""
    numbers = np.unique(unit_of, return_inverse=True)[1]
    return np.bincount(numbers, values).astype(np.float64, copy=False)


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """What simulated pull requests without a change met, as shares and runs of the suite.

    Args:
        false_alarms: red ones; without drift, with drift of the day, and where the provider changed since the pool.
        extra_runs: mean further runs of the suite, both sides, in the same three situations.
    """

    false_alarms: tuple[float, float, float]
    extra_runs: tuple[float, float, float]


# 50 cases, 3 iterations, 10 runs in the pool; drift with a standard deviation of .5 logits, a step of −.5 logits.
_SIMULATED = {
    "default": Simulated(false_alarms=(0.004, 0.004, 0.019), extra_runs=(0.16, 0.62, 1.46)),
    "thrifty": Simulated(false_alarms=(0.004, 0.004, 0.017), extra_runs=(0.13, 0.58, 1.36)),
    "thorough": Simulated(false_alarms=(0.006, 0.006, 0.023), extra_runs=(0.26, 0.76, 1.75)),
}


@dataclass(frozen=True, kw_only=True)
class Power:
    """What the gate can do with a pool.

    Args:
        pool_runs: runs of the pool that count.
        run_calls: iterations of one run of the suite.
        detectable: metric id → detectable drop, 0..1; ``None`` if unknown.
        simulated: false alarms and extra runs in simulated suites; ``None`` for settings that were not simulated.
        most_runs: most further runs of the suite that one pull request can cost.
        most_case_calls: most further iterations for single cases.
    """

    pool_runs: int
    run_calls: int
    detectable: dict[str, float | None]
    simulated: Simulated | None
    most_runs: float
    most_case_calls: int


def power_of(evidence: Evidence, settings: GateSettings) -> Power:
    """Return what the gate can do with a pool; the first run is used only with a pool of one run."""
    trial = start(evidence, settings, mirrored=False)
    longer = min(settings.head_to_head_factor, max(1, -(-settings.head_to_head_calls // max(trial.run_calls, 1))))
    name = next((name for name, known in NAMED_SETTINGS.items() if known == settings), None)
    return Power(
        pool_runs=len(trial.pool),
        run_calls=trial.run_calls,
        detectable={
            metric: detectable_drop(trial.first, trial.pool, number, trial.unit_of, settings)
            for number, metric in enumerate(trial.layout.metrics)
        },
        simulated=_SIMULATED.get(name or ""),
        most_runs=2.0 * len(settings.strict) * longer + (0 if trial.pool else 1),
        most_case_calls=2 * settings.case_rounds[-1] * min(settings.max_cases, len(trial.plan)),
    )
