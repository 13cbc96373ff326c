"""Comparisons of means: the first comparison, and the comparisons that decide."""

from __future__ import annotations

import math
from dataclasses import replace

from agenteval.compare.statistics.interval import detectable_drop, precision
from agenteval.compare.statistics.mean_comparison import Aggregate, compare_means
from agenteval.compare.statistics.model import MetricRuns
from agenteval.compare.statistics.parameters import Confirm, GateParameters
from agenteval.compare.statistics.run_table import RunTable, tabulate

# Each comparison draws separate labels; the first two values are also the numbers of runs of the pull request.
_FIRST, _POOLED, _BESIDE = 1, 2, 3


def first_comparison(metric: MetricRuns, parameters: GateParameters) -> Aggregate | None:
    """Compare the first run with the pool; return ``None`` if no case has scores in both."""
    table = first_table(metric)
    return None if table is None else compare_means(table, metric.step, (metric.seed, _FIRST), parameters)


def first_table(metric: MetricRuns) -> RunTable | None:
    """Return the table of the first comparison."""
    return tabulate(metric.compared, lambda case: (case.current,), lambda case: case.baseline)


def deciding_comparisons(metric: MetricRuns, confirm: Confirm, parameters: GateParameters) -> tuple[Aggregate, ...]:
    """Return the comparisons that must all show the drop before the gate fails; empty if their runs are missing.

    ``rerun``: both runs of the pull request with the pool. ``against-base``: its second run with the run of the base
    commit's agent beside it. ``both``: these two. ``off``: none, the first comparison decides.
    """
    found = []
    if confirm in {"rerun", "both"}:
        table = tabulate(metric.compared, lambda case: (case.current, case.second), lambda case: case.baseline)
        found.append((table, _POOLED))
    if confirm in {"against-base", "both"}:
        found.append((tabulate(metric.compared, lambda case: (case.second,), lambda case: (case.control,)), _BESIDE))
    needed = (1 - parameters.max_lost_cases) * len(metric.compared)
    complete = [(table, stream) for table, stream in found if table is not None and table.cases >= needed]
    if len(complete) < len(found):
        return ()
    return tuple(compare_means(table, metric.step, (metric.seed, stream), parameters) for table, stream in complete)


def detectable(metric: MetricRuns, confirm: Confirm, parameters: GateParameters) -> float | None:
    """Return the smallest drop, 0..1, that the whole procedure detects with the given power; ``None`` without cases.

    If the single run of the base commit's agent decides, its noise replaces the noise of the mean of R baseline runs:
    the standard error grows by sqrt(2 / (1 + 1/R)). The first run does not count again then, so a drop has to pass
    two independent tests, each with the square root of the given power.
    """
    table = first_table(metric)
    if table is None:
        return None
    found = precision(table, metric.step)
    if confirm in {"against-base", "both"}:
        growth = math.sqrt(2 / (1 + 1 / table.baseline.shape[1]))
        found = replace(found, standard_error=found.standard_error * growth)
        power = math.sqrt(parameters.power)
        parameters = replace(parameters, alpha_single=parameters.alpha_aggregate, power=power)
    return detectable_drop(found, parameters)
