"""Whether the runs of the pool differ by more than the variation of single cases explains."""

from __future__ import annotations

import numpy as np

from agenteval.compare.regression.model import Evidence
from agenteval.compare.regression.settings import GateSettings
from agenteval.compare.regression.trial import start
from agenteval.core.statistics import ROUNDING, f_survival

# Fewer runs or independent cases say little.
_LEAST_RUNS, _LEAST_UNITS = 3, 5


def pool_drift_p(evidence: Evidence, settings: GateSettings) -> dict[str, float]:
    """Return for each metric the p of a drift between the runs of the pool, if it can be tested.

    Two-way analysis of variance without replication (Fisher 1925): the variation of the runs' means against that of
    the cases within runs, over the independent cases that all runs have scored.
    """
    trial = start(evidence, settings, mirrored=False)
    found: dict[str, float] = {}
    for number, name in enumerate(trial.layout.metrics):
        if len(trial.pool) < _LEAST_RUNS:
            break
        means = np.column_stack([run.means[number] for run in trial.pool])
        complete = ~np.isnan(means).any(axis=1)
        units = np.unique(trial.unit_of[complete])
        if len(units) < _LEAST_UNITS:
            continue
        table = np.array([means[complete & (trial.unit_of == unit)].mean(axis=0) for unit in units])
        of_runs = table.mean(axis=0, keepdims=True) - table.mean()
        rest = table - table.mean(axis=1, keepdims=True) - of_runs
        free = len(units) - 1
        within = float((rest**2).sum()) / ((len(trial.pool) - 1) * free)
        between = len(units) * float((of_runs**2).sum()) / (len(trial.pool) - 1)
        if within > ROUNDING:
            found[name] = f_survival(between / within, len(trial.pool) - 1, (len(trial.pool) - 1) * free)
    return found
