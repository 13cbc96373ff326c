"""The proof of a lower mean: a second run of the agent under test, then both sides run side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from agenteval.compare.regression.interval import Inversion
from agenteval.compare.regression.labels import LabelTest
from agenteval.compare.regression.model import Look, Stage
from agenteval.compare.regression.runs import Numbers, Run, join, mean_of_rows
from agenteval.compare.regression.settled import SETTLED_SCREEN
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
    limits = SETTLED_SCREEN if trial.evidence.is_staged else (settings.screen_epoch, settings.screen_newest)
    if len(trial.pool) > 1:
        p_newest = trial.against_pool(first, trial.pool[-1:], SCREEN_NEWEST)
    else:
        p_newest = p_epoch
        limits = (sum(limits),) * 2
    low_epoch, low_newest = p_epoch <= limits[0] + ROUNDING, p_newest <= limits[1] + ROUNDING
    trial.watched = sorted(trial.counting(np.flatnonzero(low_epoch | low_newest).tolist()))
    trial.by_newest = bool(low_newest.any())
    trial.test = MeanTest("screen", [trial.first], trial.pool, p_epoch, limits[0])


def prove_means(trial: Trial) -> Asking[None]:
    """Confirm or drop the suspicion about the watched metrics; notes the proven ones."""
    if not (yield from is_low_again(trial)):
        return
    length = trial.settings.length(trial.run_calls)
    second = trial.second
    if second is None:
        raise RuntimeError("the second run was not made")
    if length > 1:
        more = {case: count * (length - 1) for case, count in trial.plan.items()}
        made = yield from trial.ask("head-to-head", ("current",), more, is_whole=True)
        second = join([second, made["current"]])
    yield from compare_side_by_side(trial, [second], length, {}, "head-to-head")


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


def compare_side_by_side(
    trial: Trial, own: list[Run], length: int, burden: Mapping[int, float], stage: Stage
) -> Asking[None]:
    """Run both sides until a drop is proven or the suspicion is dropped; notes the proven metrics.

    Args:
        own: runs of the agent under test that count; missing ones are made.
        length: how many times longer than a run of the suite each run is.
        burden: metric → a drop that was proven before. With it, nothing is dropped early, and a metric that is still
            lower by half of that counts as proven.
    """
    settings = trial.settings
    control: list[Run] = []
    wanted = {case: count * length for case, count in trial.plan.items()}
    for number, strict in enumerate(settings.strict):
        if len(own) > number:
            made = yield from trial.ask(stage, ("control",), wanted, is_whole=True)
        else:
            made = yield from trial.ask(stage, ("current", "control"), wanted, is_whole=True)
            own.append(made["current"])
        control.append(made["control"])
        trial.stage = stage
        trial.control_p = _p_of_control(trial, control, number)
        calm = not burden and trial.control_p > settings.calm_p
        look = look_at(trial, own, control, settings.calm[number] if calm else strict)
        trial.looks.append(replace(look, calm=calm))
        if trial.means:
            return
        if not burden and number < len(settings.futile) and _is_refuted(trial, own, control, settings.futile[number]):
            return
    differences = np.minimum(*(test.differences for test in both_readings(trial, own, control)))
    trial.means |= {metric for metric, drop in burden.items() if differences[metric] <= -drop / 2 + ROUNDING}
    trial.carried_means = {metric: drop for metric, drop in burden.items() if metric in trial.means}


def _is_refuted(trial: Trial, own: list[Run], control: list[Run], limit: float) -> bool:
    """Return whether each metric has a p above a limit or no drop that counts, whichever way lost iterations count.

    Dropping a suspicion early cannot raise the rate of false alarms.
    """
    readings = [([trial.view(run) for run in own], [trial.view(run) for run in control]), (own, control)]
    return all(
        _has_no_drop(trial, ours, theirs, metric)
        for test, (ours, theirs) in zip(both_readings(trial, own, control), readings, strict=True)
        for metric in np.flatnonzero(test.p <= limit + ROUNDING).tolist()
    )


def _has_no_drop(trial: Trial, own: list[Run], control: list[Run], metric: int) -> bool:
    """Return whether a drop of ``min_effect`` or more is excluded, with 95 % on one side."""
    settings = trial.settings
    seed = trial.seed(HEAD_TO_HEAD + len(control) - 1)
    lower, _ = Inversion(own, control, trial.unit_of, seed, settings).interval(metric, settings.negligible)
    return lower > -settings.min_effect + ROUNDING


def both_readings(trial: Trial, own: list[Run], control: list[Run]) -> tuple[LabelTest, LabelTest]:
    """Test both sides with lost iterations as they count, and as missing: those of the control could hide a drop."""
    test = HEAD_TO_HEAD + len(control) - 1
    return trial.compare(map(trial.view, own), map(trial.view, control), test), trial.compare(own, control, test)


def _p_of_control(trial: Trial, control: list[Run], number: int) -> float:
    """Return the smallest p that the control's runs are lower than the pool; 0 without a pool."""
    if not trial.pool:
        return 0.0
    return float(trial.compare([trial.view(join(control))], trial.pool, CALM + number).p.min())


def look_at(trial: Trial, own: list[Run], control: list[Run], limit: float) -> Look:
    """Test both sides, and note the proven metrics."""
    seed = HEAD_TO_HEAD + len(control) - 1
    test = trial.compare(map(trial.view, own), map(trial.view, control), seed)
    trial.test = MeanTest("head-to-head", list(own), list(control), test.p, limit, trial.seed(seed))
    trial.means = trial.counting(proven_means(test.p, test.differences, limit, trial.settings.min_effect))
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
