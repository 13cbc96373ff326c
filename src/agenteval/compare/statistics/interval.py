"""The interval of a difference of means, and the smallest drop that a comparison can detect."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from agenteval.compare.statistics.parameters import GateParameters
from agenteval.compare.statistics.run_table import RunTable
from agenteval.core.statistics import ROUNDING, student_t_quantile

_NORMAL = NormalDist()
_ROUNDS = 60


def cluster_error(table: RunTable) -> float:
    """Return the clustered standard error of the mean difference, 0..1 (Miller 2024, arXiv:2411.00640, section 2).

    sqrt(sum over units of (sum of deviations)^2 * C / (C - 1)) / N with N cases in C units.
    """
    return _error(table, 0.0)


def guarded_error(table: RunTable, step: float) -> float:
    """Return the clustered standard error with two more deviations: one score step in one iteration, up and down.

    The guard prevents an error of 0 for suites without any difference, the weak spot of the plain formula.

    Args:
        table: the scores of both runs.
        step: smallest possible difference between two scores.
    """
    least = step / (table.current_iterations * table.current.shape[1])
    return _error(table, 2 * least * least)


def _error(table: RunTable, extra: float) -> float:
    deviations = table.per_unit(table.differences - table.differences.mean())
    correction = table.units / max(table.units - 1, 1)
    return math.sqrt((float(deviations @ deviations) + extra) * correction) / table.cases


def interval(table: RunTable, step: float, confidence: float) -> tuple[float, float]:
    """Return the two-sided t interval of the mean difference, clipped to -1..1."""
    difference = float(table.differences.mean())
    quantile = student_t_quantile(0.5 + confidence / 2, max(table.units - 1, 1))
    margin = quantile * guarded_error(table, step)
    return max(-1.0, difference - margin), min(1.0, difference + margin)


@dataclass(frozen=True)
class Precision:
    """The quantities that determine the smallest detectable drop.

    Args:
        standard_error: guarded standard error of the mean difference.
        cases: number of compared cases.
        units: number of independent units among them.
        moved: number of units whose difference is not 0.
        iterations: iterations of a case in the current runs.
        binary: whether scores are only 0 and 1.
    """

    standard_error: float
    cases: float
    units: float
    moved: float
    iterations: float
    binary: bool


def precision(table: RunTable, step: float) -> Precision:
    """Return the precision of a comparison."""
    return Precision(
        standard_error=guarded_error(table, step),
        cases=table.cases,
        units=table.units,
        moved=int(np.count_nonzero(np.abs(table.per_unit(table.differences)) > ROUNDING)),
        iterations=table.current_iterations * table.current.shape[1],
        binary=step == 1,
    )


def detectable_drop(precision: Precision, parameters: GateParameters) -> float:
    """Return the smallest drop of the mean, 0..1, that the gate detects with the given power.

    Fixed point of  d = max((t_alpha + t_power) s, min_effect + z_power s)  with  s^2 = SE^2 + d (1 - d) / (N k),
    where t has as many degrees of freedom as units would change at a drop d. The usual sum of quantiles times SE
    (Miller 2024) is too optimistic: in a suite that nearly always passes, SE is small until a case fails, and only
    the few changed units carry information.
    """
    drop = min(1.0, 2.6 * precision.standard_error)
    for _ in range(_ROUNDS):
        error, freedom = _under(precision, drop)
        quantiles = student_t_quantile(1 - parameters.alpha_single, freedom) + student_t_quantile(
            parameters.power, freedom
        )
        needed = max(quantiles * error, parameters.min_effect + _NORMAL.inv_cdf(parameters.power) * error)
        following = (drop + min(1.0, needed)) / 2
        if abs(following - drop) < ROUNDING:
            break
        drop = following
    return drop


def _under(precision: Precision, drop: float) -> tuple[float, float]:
    """Return standard error and degrees of freedom if the mean dropped by this much."""
    variance = precision.standard_error**2
    if precision.binary:
        variance += drop * (1 - drop) / (precision.cases * precision.iterations)
        moved = precision.moved + precision.units * (1 - (1 - drop) ** precision.iterations)
    else:
        moved = max(precision.moved, precision.units / 2)
    # Rounding to half degrees is precise enough and allows caching of the quantiles.
    freedom = max(2.0, min(moved, precision.units) - 1)
    return math.sqrt(variance), round(2 * freedom) / 2
