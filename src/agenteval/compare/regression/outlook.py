"""What the gate will find with more runs like a first one, from its iterations: they vary within a run only."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from agenteval.compare.regression.capability import case_calls
from agenteval.compare.regression.model import Evidence
from agenteval.compare.regression.power import blind, detectable_drop, detectable_multiple, distinct
from agenteval.compare.regression.runs import Run
from agenteval.compare.regression.settings import GateSettings
from agenteval.compare.regression.trial import Trial, start

_RUNS = (1, 3, 5)


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What is found with some runs in the pool.

    Attributes:
        detectable: metric id → detectable drop, 0..1; metrics whose iterations do not vary are left out.
    """

    runs: int
    detectable: dict[str, float]
    too_few: bool
    case_calls: int | None


def expected(evidence: Evidence, settings: GateSettings) -> Iterator[Expected]:
    """Yield what is found with one, three and five runs.

    Args:
        evidence: the first run as the only run of the pool.
    """
    trial = start(evidence, settings, mirrored=False)
    calls = case_calls(evidence, settings)
    deviations = {
        name: deviation
        for number, name in enumerate(trial.layout.metrics)
        if trial.pool and (deviation := _deviation(trial, number))
    }
    for runs in _RUNS:
        if runs > max(settings.window, 1):
            return
        yield Expected(
            runs=runs,
            detectable={
                name: min(1.0, max(settings.min_effect, detectable_multiple(runs) * deviation))
                for name, deviation in deviations.items()
            },
            too_few=blind(distinct(trial.unit_of), runs, settings) is not None,
            case_calls=calls,
        )


def _deviation(trial: Trial, metric: int) -> float | None:
    """Return the standard deviation of the mean of a run; ``None`` without variation or a second iteration."""
    run = trial.pool[0]
    scores, lost = run.scores[metric], run.lost[metric]
    complete = ~np.isnan(scores).any(axis=1)
    count = scores.shape[1]
    if count < 2 or not complete.any():
        return None
    iterations = [_only(run, metric, number) for number in range(count)] if not lost.all() else []
    free = replace(trial.settings, min_effect=0.0)
    drop = detectable_drop(None, iterations, metric, trial.unit_of, free)
    return None if drop is None else drop / detectable_multiple(count) / math.sqrt(count)


def _only(run: Run, metric: int, iteration: int) -> Run:
    """Return one iteration of a run; other metrics may have fewer."""

    def column(values: np.ndarray, number: int) -> np.ndarray:
        return values[:, [iteration]] if number == metric else values[:, :1]

    return Run(
        tuple(column(scores, number) for number, scores in enumerate(run.scores)),
        tuple(column(lost, number) for number, lost in enumerate(run.lost)),
    )
