"""The proof of a lower mean: a second run of the agent under test, then both sides run side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from agenteval.compare.regression.model import Look, Stage
from agenteval.compare.regression.runs import Numbers, Run, join, mean_of_rows
from agenteval.compare.regression.trial import (
    CALM,
    HEAD_TO_HEAD,
    SCREEN_EPOCH,
    SCREEN_NEWEST,
    SECOND_EPOCH,
    SECOND_NEWEST,
    Asking,
    MeanTest,
    Trial,
)
from agenteval.core.statistics import ROUNDING


def screen_means(trial: Trial) -> None:
    """Find the metrics whose mean in the first run looks lower than the pool's, and note them as watched."""
    settings, first = trial.settings, [trial.view(trial.first)]
    p_epoch = trial.against_pool(first, trial.pool, SCREEN_EPOCH)
    if len(trial.pool) > 1:
        p_newest = trial.against_pool(first, trial.pool[-1:], SCREEN_NEWEST)
        limits = settings.screen_epoch, settings.screen_newest
    else:
        p_newest = p_epoch
        limits = (settings.screen_epoch + settings.screen_newest,) * 2
    low_epoch, low_newest = p_epoch <= limits[0] + ROUNDING, p_newest <= limits[1] + ROUNDING
    trial.watched = np.flatnonzero(low_epoch | low_newest).tolist()
    trial.by_newest = bool(low_newest.any())
    trial.test = MeanTest("screen", [trial.first], trial.pool, p_epoch, limits[0])


def prove_means(trial: Trial) -> Asking[None]:
    """Confirm or drop the suspicion about the watched metrics; notes the proven ones."""
    if not (yield from is_low_again(trial)):
        return
    length = _longer(trial)
    second = trial.second
    if second is None:
        raise RuntimeError("the second run was not made")
    if length > 1:
        more = {case: count * (length - 1) for case, count in trial.plan.items()}
        made = yield from trial.ask("head-to-head", ("current",), more, is_whole=True)
        second = join([second, made["current"]])
    yield from compare_side_by_side(trial, [second], length, {})


def is_low_again(trial: Trial) -> Asking[bool]:
    """Run the agent under test again, pass by pass, and return whether its two runs look lower."""
    settings = trial.settings
    trial.is_low_again = False
    if not (yield from _second_run(trial)) or trial.second is None:
        return False
    own = [trial.view(trial.first), trial.view(trial.second)]
    p = trial.against_pool(own, trial.pool, SECOND_EPOCH)
    by_newest = trial.against_pool(own, trial.pool[-1:], SECOND_NEWEST) if trial.by_newest else p
    smallest = np.minimum(p, by_newest)
    trial.test = MeanTest("second", [trial.second], trial.pool, p, settings.recheck)
    trial.is_low_again = bool(smallest[trial.watched].min() <= settings.recheck + ROUNDING)
    return trial.is_low_again


def _second_run(trial: Trial) -> Asking[bool]:
    """Make the second run; return whether it was not stopped because the suspicion is gone."""
    passes = max(trial.plan.values(), default=0)
    made: list[Run] = []
    for number in range(passes):
        wanted = {case: 1 for case, count in trial.plan.items() if count > number}
        answer = yield from trial.ask("second", ("current",), wanted, is_whole=True)
        trial.stage = "second"
        made.append(answer["current"])
        trial.second = join(made)
        trial.test = MeanTest("second", [trial.second], trial.pool, None, None)
        if number < passes - 1 and all(_has_recovered(trial, metric) for metric in trial.watched):
            return False
    return passes > 0


def _has_recovered(trial: Trial, metric: int) -> bool:
    """Return whether the second run so far is above the pool by a share of the first run's drop."""
    if trial.second is None:
        return False
    pool = trial.pool[-1:] if trial.by_newest else trial.pool
    levels = [mean_over_runs([run], metric) for run in (trial.view(trial.first), trial.view(trial.second))]
    before = mean_over_runs(pool, metric)
    compared = ~np.isnan(levels[0]) & ~np.isnan(before)
    if not compared.any() or np.isnan(levels[1][compared]).all():
        return False
    first, second, earlier = (float(np.nanmean(values[compared])) for values in (*levels, before))
    return second >= earlier + trial.settings.hope * (earlier - first) - ROUNDING


def mean_over_runs(runs: list[Run], metric: int) -> Numbers:
    """Return the mean of each case over the runs that contain it."""
    return mean_of_rows(np.column_stack([run.means[metric] for run in runs]))


def _longer(trial: Trial) -> int:
    """Return how many times longer the runs of the head-to-head are: small suites need more iterations."""
    settings = trial.settings
    wanted = -(-settings.head_to_head_calls // max(trial.run_calls, 1))
    return min(settings.head_to_head_factor, max(1, wanted))


def compare_side_by_side(trial: Trial, own: list[Run], length: int, burden: Mapping[int, float]) -> Asking[None]:
    """Run both sides until a drop is proven or the suspicion is dropped; notes the proven metrics.

    Args:
        trial: the state.
        own: runs of the agent under test that count; missing ones are made.
        length: how many times longer than a run of the suite each run is.
        burden: metric → a drop that was proven before. With it, nothing is dropped early, and a metric that is still
            lower by half of that counts as proven.
    """
    settings = trial.settings
    control: list[Run] = []
    wanted = {case: count * length for case, count in trial.plan.items()}
    stage: Stage = "memory" if burden else "head-to-head"
    for number, strict in enumerate(settings.strict):
        if len(own) > number:
            made = yield from trial.ask(stage, ("control",), wanted, is_whole=True)
        else:
            made = yield from trial.ask(stage, ("current", "control"), wanted, is_whole=True)
            own.append(made["current"])
        control.append(made["control"])
        trial.stage = stage
        calm = not burden and _is_calm(trial, control, number)
        look = look_at(trial, own, control, settings.calm[number] if calm else strict)
        trial.looks.append(replace(look, calm=calm))
        if trial.means:
            return
        if not burden and number < len(settings.futile) and look.p > settings.futile[number] + ROUNDING:
            return
    differences = trial.compare(map(trial.view, own), map(trial.view, control), HEAD_TO_HEAD).differences
    trial.means |= {metric for metric, drop in burden.items() if differences[metric] <= -drop / 2 + ROUNDING}
    trial.carried_means = {metric: drop for metric, drop in burden.items() if metric in trial.means}


def _is_calm(trial: Trial, control: list[Run], number: int) -> bool:
    """Return whether the control's runs do not look lower than the pool."""
    if not trial.pool:
        return False
    p = trial.compare([trial.view(join(control))], trial.pool, CALM + number).p
    return bool(p.min() > trial.settings.calm_p)


def look_at(trial: Trial, own: list[Run], control: list[Run], limit: float) -> Look:
    """Test both sides, and note the proven metrics."""
    seed = HEAD_TO_HEAD + len(control) - 1
    test = trial.compare(map(trial.view, own), map(trial.view, control), seed)
    trial.test = MeanTest("head-to-head", list(own), list(control), test.p, limit, trial.seed(seed))
    trial.means = proven_means(test.p, test.differences, limit, trial.settings.min_effect)
    lowest = int(np.argmin(test.p))
    return Look(
        runs=len(control),
        metric=trial.layout.metrics[lowest],
        p=float(test.p[lowest]),
        limit=limit,
        difference=float(test.differences[lowest]),
        calm=False,
    )


def proven_means(p: Numbers, differences: Numbers, limit: float, least: float) -> set[int]:
    """Return the metrics with a p at most ``limit`` and a drop of at least ``least``."""
    proven = (p <= limit + ROUNDING) & (differences <= -least + ROUNDING)
    return set(np.flatnonzero(proven).tolist())
