"""Drift: whether the baseline runs differ by more than the noise of their cases explains."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from agenteval.compare.statistics.means import first_table
from agenteval.compare.statistics.model import MetricRuns
from agenteval.compare.statistics.parameters import GateParameters
from agenteval.compare.statistics.run_table import Numbers, RunTable
from agenteval.core.statistics import ROUNDING, f_survival

_SIGNIFICANT = 0.05


@dataclass(frozen=True, kw_only=True)
class DriftCheck:
    """Spread of the means of the baseline runs.

    Args:
        p: probability of such a spread without drift; ``None`` if the pool is too small.
        observed: standard deviation of the runs' means, 0..1.
        expected: standard deviation that independent noise of the cases explains.
        runs: number of baseline runs.
        text: the result as text.
    """

    p: float | None
    observed: float
    expected: float
    runs: int
    text: str

    @property
    def drifts(self) -> bool:
        """Whether to recommend a comparison at the same time (``confirm: against-base``)."""
        return self.p is not None and self.p <= _SIGNIFICANT


def check_drift(metric: MetricRuns, parameters: GateParameters) -> DriftCheck:
    """Check the pool of a metric for drift.

    Without drift the units vary independently of each other, so that the variance of the runs' means is the sum of
    the units' variances between runs: F = var(means) / sum of var(unit), as in a two-way analysis of variance (Fisher
    1925). The noise of the units differs, so the second degrees of freedom follow Satterthwaite (1946).
    """
    table = first_table(metric.newest(parameters.window))
    runs = 0 if table is None else table.baseline.shape[1]
    if table is None or runs < 2:
        return DriftCheck(p=None, observed=0.0, expected=0.0, runs=runs, text="drift needs two baseline runs to show")
    shares = _unit_shares(table)
    variances = shares.var(axis=1, ddof=1)
    observed, expected = math.sqrt(shares.sum(axis=0).var(ddof=1)), math.sqrt(variances.sum())
    if np.count_nonzero(variances > ROUNDING**2) < 2:
        text = "too few cases vary between the baseline runs to tell drift from noise"
        return DriftCheck(p=None, observed=observed, expected=expected, runs=runs, text=text)
    freedom = (runs - 1) * expected**4 / float(variances @ variances)
    p = f_survival((observed / expected) ** 2, runs - 1, freedom)
    return DriftCheck(p=p, observed=observed, expected=expected, runs=runs, text=_text(p, observed, expected, runs))


def _unit_shares(table: RunTable) -> Numbers:
    """Return units by runs: the contribution of each unit to the mean of the cases that all runs have."""
    complete = ~np.isnan(table.baseline).any(axis=1, keepdims=True)
    scores = np.where(complete, table.baseline, 0.0) / max(np.count_nonzero(complete), 1)
    return np.column_stack([table.per_unit(column) for column in scores.T])


def _text(p: float, observed: float, expected: float, runs: int) -> str:
    spread = f"the means of the {runs} baseline runs vary by {_points(observed)} (standard deviation)"
    if p > _SIGNIFICANT:
        return f"{spread}, no more than the noise of the cases explains ({_points(expected)}, p = {p:.2g})"
    return (
        f"{spread}, more than the noise of the cases explains ({_points(expected)}, p = {p:.2g}): the model or the "
        "judge drifts between runs, and confirm: against-base compares both sides at the same time"
    )


def _points(value: float) -> str:
    return f"{100 * value:.1f} points"
