"""What the gate can do with a pool: what it finds, what it costs, and what would make it find more."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from agenteval.compare.regression.case_test import rerun_q, within_run_correlation
from agenteval.compare.regression.earlier_runs import MOST_REPEATS
from agenteval.compare.regression.model import Evidence, Failures
from agenteval.compare.regression.power import Blind, blind, detectable_drop, detectable_multiple, distinct
from agenteval.compare.regression.repeating import REPEATS, seems_to_repeat
from agenteval.compare.regression.runs import Run
from agenteval.compare.regression.settings import NAMED_SETTINGS, GateSettings
from agenteval.compare.regression.simulated import Simulated, nearest
from agenteval.compare.regression.trial import start
from agenteval.core.statistics import ROUNDING


@dataclass(frozen=True, kw_only=True)
class Improvement:
    """A way to find smaller drops.

    Args:
        detectable: metric id → detectable drop with the larger number; metrics without variation are left out.
    """

    what: Literal["iterations", "cases", "runs"]
    now: int
    then: int
    detectable: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Power:
    """What the gate can do with a pool.

    Args:
        repeats: whether nothing varies between the runs of the pool.
        detectable: metric id → detectable drop, 0..1; ``None`` if unknown.
        case_calls: iterations, both sides, that prove a case that falls from 1 to 0; ``None`` if it is not provable.
        improvements: what would lower the detectable drops.
        simulated: the most similar simulated suite; ``None`` for settings that were not simulated.
        most_runs: most further runs of the suite that one pull request can cost.
        most_case_calls: most further iterations for single cases.
        blind: why no mean can be suspicious; ``None`` if one can.
    """

    pool_runs: int
    cases: int
    run_calls: int
    repeats: bool
    detectable: dict[str, float | None]
    case_calls: int | None
    improvements: tuple[Improvement, ...]
    simulated: Simulated | None
    most_runs: float
    most_case_calls: int
    blind: Blind | None = None


def power_of(evidence: Evidence, settings: GateSettings) -> Power:
    """Return what the gate can do with a pool; the first run is used only with a pool of one run."""
    trial = start(evidence, settings, mirrored=False)
    means, single = most_calls(trial.plan.values(), settings)
    name = next((name for name, known in NAMED_SETTINGS.items() if known == _calibrated(settings)), None)
    iterations = round(trial.run_calls / max(len(trial.plan), 1))
    return Power(
        pool_runs=len(trial.pool),
        cases=len(trial.plan),
        run_calls=trial.run_calls,
        repeats=_repeats(evidence, settings),
        detectable={
            metric: detectable_drop(trial.first, trial.pool, number, trial.unit_of, settings)
            for number, metric in enumerate(trial.layout.metrics)
        },
        case_calls=case_calls(evidence, settings),
        improvements=improvements(evidence, settings),
        simulated=nearest(name, len(trial.plan), iterations, len(trial.pool)),
        most_runs=means / max(trial.run_calls, 1) + (0 if trial.pool else 1),
        most_case_calls=single,
        blind=blind(distinct(trial.unit_of), len(trial.pool), settings),
    )


def most_calls(iterations: Collection[int], settings: GateSettings) -> tuple[int, int]:
    """Return the most calls that a suspicion can cost, both sides: for means, and for single cases.

    A second run is part of the head-to-head. A refuted burden of an earlier attempt can cost as much again.

    Args:
        iterations: iterations of each case in one run of the suite.
    """
    run_calls = sum(iterations)
    means = 2 * len(settings.strict) * settings.length(run_calls) * run_calls
    # A second run that drops the suspicion is not part of the runs that exclude a drop.
    means += run_calls if settings.require else 0
    return means, 2 * settings.case_rounds[-1] * min(settings.max_cases, len(iterations))


def most_calls_without_control(iterations: Collection[int], settings: GateSettings) -> tuple[int, int]:
    """Return the same as `most_calls` where earlier runs decide."""
    return sum(iterations), MOST_REPEATS * min(settings.max_cases, len(iterations))


def _calibrated(settings: GateSettings) -> GateSettings:
    """Return settings with the usual values of those that a project may choose; they do not raise the error rates."""
    usual = GateSettings()
    return replace(
        settings,
        window=usual.window,
        tolerance=usual.tolerance,
        min_effect=usual.min_effect,
        max_cases=usual.max_cases,
        require=usual.require,
    )


def case_calls(evidence: Evidence, settings: GateSettings) -> int | None:
    """Return the iterations, both sides, that prove a case that never failed and now always fails.

    The metric in which iterations of a run resemble each other most decides.

    Returns:
        ``None`` if even the last round cannot prove it, or if no metric has a threshold.
    """
    if not any(metric.thresholds for metric in evidence.metrics):
        return None
    trial = start(evidence, settings, mirrored=False)
    if _repeats(evidence, settings):
        return 2 * REPEATS
    correlation = max(
        (
            within_run_correlation(trial.pool, metric, (), trial.layout, settings)
            for metric, gating in enumerate(evidence.metrics)
            if trial.pool and gating.thresholds
        ),
        default=settings.prior_correlation,
    )
    for total, spend in zip(settings.case_rounds, settings.case_spend, strict=True):
        if spend and rerun_q(Failures(total, total), Failures(0, total), correlation) <= settings.case_alpha * spend:
            return 2 * total
    return None


def _repeats(evidence: Evidence, settings: GateSettings) -> bool:
    """Return whether nothing varies between the runs of the pool."""
    if not evidence.pool:
        return False
    return seems_to_repeat(start(replace(evidence, first=evidence.pool[-1]), settings, mirrored=False))


def improvements(evidence: Evidence, settings: GateSettings) -> tuple[Improvement, ...]:
    """Return what would lower the detectable drops: twice the iterations, twice the cases, and a full pool.

    More iterations average the variation within a run, but not what differs between runs.
    """
    trial = start(evidence, settings, mirrored=False)
    drops = {
        metric: drop
        for number, metric in enumerate(trial.layout.metrics)
        if (drop := detectable_drop(trial.first, trial.pool, number, trial.unit_of, settings))
    }
    if not drops:
        return ()
    cases = len(trial.plan)
    iterations = max(trial.plan.values())
    ways = [
        Improvement(
            what="iterations",
            now=iterations,
            then=2 * iterations,
            detectable={
                metric: drop * _with_twice_the_iterations(trial.pool, trial.layout.metrics.index(metric))
                for metric, drop in drops.items()
            },
        ),
        Improvement(
            what="cases",
            now=cases,
            then=2 * cases,
            detectable={metric: drop / math.sqrt(2) for metric, drop in drops.items()},
        ),
    ]
    if (runs := len(trial.pool)) < settings.window:
        factor = detectable_multiple(settings.window) / detectable_multiple(runs)
        ways.append(
            Improvement(
                what="runs",
                now=runs,
                then=settings.window,
                detectable={metric: drop * factor for metric, drop in drops.items()},
            )
        )
    return tuple(ways)


def _with_twice_the_iterations(pool: Sequence[Run], metric: int) -> float:
    """Return the factor of the standard deviation of the mean between runs."""
    means = np.column_stack([run.means[metric] for run in pool])
    between = np.nanvar(means, axis=1, ddof=1) if means.shape[1] > 1 else np.zeros(len(means))
    within = []
    for run in pool:
        scored = run.scored[metric]
        spread = np.nansum((run.scores[metric] - run.means[metric][:, None]) ** 2, axis=1)
        within.append(np.where(scored > 1, spread / np.maximum(scored - 1, 1) / np.maximum(scored, 1), np.nan))
    own = np.nanmean(np.column_stack(within), axis=1)
    total, averaged = float(np.nansum(between)), float(np.nansum(own))
    if total <= ROUNDING or math.isnan(averaged):
        return 1 / math.sqrt(2)
    return math.sqrt(max(0.5, 1 - averaged / total / 2))
