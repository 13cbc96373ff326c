"""The comparison of means for one metric: estimate, interval and tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agenteval.compare.statistics.interval import cluster_error, guarded_error, interval
from agenteval.compare.statistics.parameters import GateParameters
from agenteval.compare.statistics.permutation import permutation_test
from agenteval.compare.statistics.run_chart import run_chart_p
from agenteval.compare.statistics.run_table import RunTable
from agenteval.core.statistics import ROUNDING, student_t_cdf


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """The means of one metric in both runs. Means, differences and p-values are 0..1.

    Args:
        current_mean: mean of the pull request over the compared cases.
        baseline_mean: mean of the baseline over the same cases.
        difference: current mean minus baseline mean; negative is worse.
        interval: confidence interval of the difference.
        p_low: one-sided p-value of a drop.
        p_high: one-sided p-value of a rise.
        p_chart: p-value of the run chart; ``None`` if it does not apply.
        method: method of the two one-sided p-values.
        cases: number of compared cases.
        units: number of independent units: clusters, and cases without a cluster.
        current_runs: runs of the pull request.
        baseline_runs: runs of the baseline.
        iterations: usual number of iterations of a case in a run of the pull request.
    """

    current_mean: float
    baseline_mean: float
    difference: float
    interval: tuple[float, float]
    p_low: float
    p_high: float
    p_chart: float | None
    method: str
    cases: int
    units: int
    current_runs: int
    baseline_runs: int
    iterations: int


def compare_means(table: RunTable, step: float, seed: Sequence[int], parameters: GateParameters) -> Aggregate:
    """Compare the means of two runs.

    Args:
        table: the scores of both runs.
        step: smallest possible difference between two scores.
        seed: seed of the random labelings.
        parameters: parameters of the gate.
    """
    p_low, p_high, method = _test(table, step, seed, parameters)
    return Aggregate(
        current_mean=float(table.current_means.mean()),
        baseline_mean=float(table.baseline_means.mean()),
        difference=float(table.differences.mean()),
        interval=interval(table, step, parameters.confidence),
        p_low=p_low,
        p_high=p_high,
        p_chart=run_chart_p(table, parameters),
        method=method,
        cases=table.cases,
        units=table.units,
        current_runs=table.current.shape[1],
        baseline_runs=table.baseline.shape[1],
        iterations=table.current_iterations,
    )


def _test(table: RunTable, step: float, seed: Sequence[int], parameters: GateParameters) -> tuple[float, float, str]:
    """Return the p-value of a drop, the p-value of a rise, and the name of the method."""
    if table.current_iterations != table.baseline_iterations:
        return *_t_test(table, step), "paired t test, because the sides have different numbers of iterations"
    test = permutation_test(table, seed, parameters)
    if test.exact:
        return test.p_low, test.p_high, f"exact permutation of run labels, {test.labelings} labelings"
    return test.p_low, test.p_high, f"permutation of run labels, {test.labelings} random labelings"


def _t_test(table: RunTable, step: float) -> tuple[float, float]:
    """Run a paired t test over units, because runs of different lengths are not exchangeable."""
    difference = float(table.differences.mean())
    if abs(difference) <= ROUNDING:
        return (0.5, 0.5) if cluster_error(table) > ROUNDING else (1.0, 1.0)
    # If every unit changed by the same amount, only the guard gives an error above 0.
    error = cluster_error(table)
    p_low = student_t_cdf(
        difference / (error if error > ROUNDING else guarded_error(table, step)), max(table.units - 1, 1)
    )
    return p_low, 1 - p_low
