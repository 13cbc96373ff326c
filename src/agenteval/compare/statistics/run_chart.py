"""The run chart: whether a drop exceeds the variation of the baseline runs."""

from __future__ import annotations

import math

import numpy as np

from agenteval.compare.statistics.parameters import GateParameters
from agenteval.compare.statistics.run_table import RunTable
from agenteval.core.statistics import ROUNDING, student_t_cdf


def run_chart_p(table: RunTable, parameters: GateParameters) -> float | None:
    """Return the one-sided p-value of the pull request's mean for the spread of the baseline runs' means.

    Student's t for a new mean among R old ones: t = (m - mean(b)) / (s_b sqrt(1/n + 1/R)), R - 1 degrees of freedom,
    over the cases that are in every run. It accounts for drift of the model or the judge between runs, which a test
    within cases cannot detect.

    Returns:
        ``None`` with fewer than ``chart_runs`` baseline runs, or if fewer than half of the cases are in all runs.
    """
    runs = table.baseline.shape[1]
    complete = ~np.isnan(table.baseline).any(axis=1)
    if runs < parameters.chart_runs or np.count_nonzero(complete) < max(1, table.cases // 2):
        return None
    means = table.baseline[complete].mean(axis=0)
    difference = float(table.current[complete].mean() - means.mean())
    spread = float(means.std(ddof=1))
    if spread < ROUNDING:
        return 0.0 if difference < -ROUNDING else 1.0
    return student_t_cdf(difference / (spread * math.sqrt(1 / table.current.shape[1] + 1 / runs)), runs - 1)
