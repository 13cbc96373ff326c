"""Statistical power: what halves the detectable drop, and what that costs."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from agenteval.compare.statistics.interval import Precision, cluster_error, detectable_drop, precision
from agenteval.compare.statistics.means import first_table
from agenteval.compare.statistics.model import MetricRuns, Scores
from agenteval.compare.statistics.parameters import GateParameters
from agenteval.compare.statistics.run_table import RunTable

Means = Literal["cases", "iterations", "baseline runs"]

# Larger numbers of iterations, or larger factors for the suite, are not practical.
_MOST_ITERATIONS = 50
_MOST_GROWTH = 50


@dataclass(frozen=True, kw_only=True)
class Improvement:
    """One way to halve the detectable drop.

    Args:
        means: the quantity to increase.
        now: its current value.
        wanted: the required value.
        extra_iterations: additional iterations in every run of a pull request; 0 for baseline runs, which accumulate
            without extra runs.
        detectable_drop: the resulting detectable drop, 0..1.
    """

    means: Means
    now: int
    wanted: int
    extra_iterations: int
    detectable_drop: float


@dataclass(frozen=True, kw_only=True)
class _Design:
    """The size of a comparison, and the components of the variance of a case's difference."""

    precision: Precision
    baseline_runs: int
    step: float
    between_cases: float
    between_runs: float
    between_iterations: float

    def resized(self, cases: int, iterations: int, baseline_runs: int) -> Precision:
        """Return the expected precision of a comparison of another size.

        SE^2 = (between cases + (1 + 1/R) (between runs + between iterations / k)) / N  (the split of Miller 2024,
        section 4), and the guard of `interval.guarded_error`.
        """
        noise = self.between_runs + self.between_iterations / iterations
        variance = (self.between_cases + (1 + 1 / baseline_runs) * noise) / cases
        guard = 2 * (self.step / (iterations * cases)) ** 2
        growth = cases / self.precision.cases
        return replace(
            self.precision,
            standard_error=math.sqrt(variance + guard),
            cases=cases,
            units=self.precision.units * growth,
            moved=self.precision.moved * growth,
            iterations=iterations,
        )


def ways_to_halve(metric: MetricRuns, parameters: GateParameters) -> tuple[Improvement, ...]:
    """Return ways to halve the detectable drop of the first run, the cheapest first.

    Args:
        metric: the scores of both runs.
        parameters: parameters of the gate; more baseline runs than ``window`` are not proposed.

    Returns:
        Empty if no case was compared, or if no way exists: no detectable drop is below ``min_effect``.
    """
    metric = metric.newest(parameters.window)
    table = first_table(metric)
    if table is None:
        return ()
    design = _design(metric, table)
    cases, iterations, runs = table.cases, table.current_iterations, table.baseline.shape[1]
    goal = detectable_drop(design.precision, parameters) / 2

    def smallest(sizes: range, size: Callable[[int], tuple[int, int, int]]) -> tuple[int, float] | None:
        # A larger size never increases the detectable drop.
        def drop(n: int) -> float:
            return detectable_drop(design.resized(*size(n)), parameters)

        place = bisect_left(sizes, True, key=lambda n: drop(n) <= goal)
        return (sizes[place], drop(sizes[place])) if place < len(sizes) else None

    found = []
    if best := smallest(range(runs + 1, parameters.window + 1), lambda n: (cases, iterations, n)):
        found.append(_improvement("baseline runs", runs, best, 0))
    if best := smallest(range(iterations + 1, _MOST_ITERATIONS + 1), lambda n: (cases, n, runs)):
        found.append(_improvement("iterations", iterations, best, cases * (best[0] - iterations)))
    if best := smallest(range(cases + 1, cases * _MOST_GROWTH + 1), lambda n: (n, iterations, runs)):
        found.append(_improvement("cases", cases, best, iterations * (best[0] - cases)))
    return tuple(sorted(found, key=lambda improvement: improvement.extra_iterations))


def _improvement(means: Means, now: int, best: tuple[int, float], extra_iterations: int) -> Improvement:
    wanted, drop = best
    return Improvement(means=means, now=now, wanted=wanted, extra_iterations=extra_iterations, detectable_drop=drop)


def _design(metric: MetricRuns, table: RunTable) -> _Design:
    runs = table.baseline.shape[1]
    total = cluster_error(table) ** 2 * table.cases
    per_iteration = _mean_variance(run for case in metric.compared for run in (case.current, *case.baseline))
    per_run = _mean_variance(row[~np.isnan(row)].tolist() for row in table.baseline)
    if per_iteration is None:
        # With one iteration per run, variation between runs counts as noise of the iterations. With a single
        # run, every difference between the two sides counts as such noise.
        per_iteration = (total / 2 if per_run is None else per_run) * table.baseline_iterations
    noise = per_iteration / table.baseline_iterations
    between_runs = 0.0 if per_run is None else max(0.0, per_run - noise)
    return _Design(
        precision=precision(table, metric.step),
        baseline_runs=runs,
        step=metric.step,
        between_cases=max(0.0, total - (1 + 1 / runs) * (between_runs + noise)),
        between_runs=between_runs,
        between_iterations=per_iteration,
    )


def _mean_variance(samples: Iterable[Sequence[float] | Scores]) -> float | None:
    """Return the mean of the sample variances; ``None`` if no sample has two values."""
    variances = [float(np.var(sample, ddof=1)) for sample in samples if len(sample) > 1]
    return sum(variances) / len(variances) if variances else None
