"""What a decision says about each mean: the figures of the test that decided about it."""

from __future__ import annotations

import numpy as np

from agenteval.compare.regression.interval import Inversion
from agenteval.compare.regression.mean_proof import mean_over_runs
from agenteval.compare.regression.model import Failures, FinerBound, MetricFinding, MovedCase, Stage
from agenteval.compare.regression.power import detectable_drop, difference_to_pool, distinct
from agenteval.compare.regression.runs import Flags, Numbers, join
from agenteval.compare.regression.trial import MeanTest, Trial
from agenteval.core.statistics import ROUNDING


def metric_findings(trial: Trial) -> list[MetricFinding]:
    """Return what was found about each metric, in the order of the evidence."""
    screen = MeanTest("screen", [trial.first], trial.pool, None, None)
    test = trial.test or screen
    inversion = None
    if test.seed is not None:
        own, other = ([trial.view(run) for run in runs] for runs in (test.own, test.other))
        inversion = Inversion(own, other, trial.unit_of, test.seed, trial.settings)
    return [
        _finding(trial, test if _decides(trial, test, metric) else screen, inversion, metric)
        for metric in range(len(trial.layout.metrics))
    ]


def _decides(trial: Trial, test: MeanTest, metric: int) -> bool:
    """Return whether a test decided about a metric: without both sides, only about the suspicious ones."""
    return test.seed is not None or metric in trial.watched or metric in trial.means


def _finding(trial: Trial, test: MeanTest, inversion: Inversion | None, metric: int) -> MetricFinding:
    layout, first = trial.layout, trial.view(trial.first).means[metric]
    before, newest = (
        mean_over_runs(runs, metric) if runs else np.full(len(layout.case_ids), np.nan)
        for runs in (trial.pool, trial.pool[-1:])
    )
    compared = ~np.isnan(first) & ~np.isnan(before)
    own, other = _sides(trial, test, metric)
    both = ~np.isnan(own) & ~np.isnan(other)
    interval = None
    if inversion is not None and test.limit is not None and both.any():
        interval = inversion.interval(metric, test.limit)
    p, limit = _p(trial, test, metric)
    baseline, stage = _mean(trial, before, compared), _stage(trial, test, metric)
    suspicious = metric in trial.watched or (trial.repeats and metric in trial.means)
    is_like_before = stage == "screen" and not suspicious
    bound, finer = _bound(trial, metric, baseline) if is_like_before or metric in trial.bounds else (None, None)
    return MetricFinding(
        metric=layout.metrics[metric],
        cases=int(compared.sum()),
        units=distinct(trial.unit_of[compared]),
        stage=stage,
        baseline=baseline,
        newest=_mean(trial, newest, compared & ~np.isnan(newest)) if trial.pool else None,
        first=_mean(trial, first, compared),
        current=_mean(trial, own, both),
        control=_mean(trial, other, both),
        runs=len(test.other) if test.seed is not None else 0,
        p=p,
        limit=limit,
        interval=(-interval[1], -interval[0]) if interval and layout.mirrored else interval,
        bound=bound,
        finer=finer,
        detectable_drop=detectable_drop(trial.first, trial.pool, metric, trial.unit_of, trial.settings),
        suspicious=suspicious,
        proven=metric in trial.means,
        moved=_moved(trial, test, metric, own - other) if metric in trial.means else (),
    )


def _sides(trial: Trial, test: MeanTest, metric: int) -> tuple[Numbers, Numbers]:
    """Return the mean of each case on both sides; as in the test, a case needs every run of the change."""
    runs = [trial.view(run) for run in test.own]
    own = np.where(
        np.any([np.isnan(run.means[metric]) for run in runs], axis=0), np.nan, mean_over_runs(runs, metric)
    )
    if not test.other:
        return own, np.full(len(own), np.nan)
    return own, mean_over_runs([trial.view(run) for run in test.other], metric)


def _stage(trial: Trial, test: MeanTest, metric: int) -> Stage:
    if trial.repeats:
        return "repeats"
    return "memory" if metric in trial.carried_means else test.stage


def _p(trial: Trial, test: MeanTest, metric: int) -> tuple[float | None, float | None]:
    """Return the p that decided, with its limit; ``None`` if something else decided."""
    is_proof = test.stage in {"head-to-head", "earlier-runs"} and metric not in trial.carried_means
    if trial.repeats or not is_proof or test.p is None or test.limit is None:
        return None, None
    p = float(test.p[metric])
    is_low = p <= test.limit + ROUNDING
    if test.seed is None and is_low != (metric in trial.means):
        # The earlier runs have further conditions, one of which decided.
        return None, None
    return (min(p, test.limit) if is_low else p), test.limit


def _bound(trial: Trial, metric: int, baseline: float) -> tuple[float | None, FinerBound | None]:
    """Return the largest drop that the first run does not exclude, ``None`` if it is everything; and a finer one."""
    if not trial.pool or trial.layout.mirrored:
        return None, None
    step = trial.evidence.metrics[metric].step
    found = difference_to_pool(trial.view(trial.first), trial.pool, metric, step, trial.unit_of)
    if found is None:
        return None, None
    bound = trial.bounds.get(metric, found.bound)
    # More iterations would also be asked of few cases only.
    finer = None if trial.evidence.is_staged else found.finer(trial.settings.tolerance)
    return (None if bound >= baseline else bound), finer


def _mean(trial: Trial, values: Numbers, compared: Flags) -> float:
    """Return the mean of the compared cases as it was scored; 0 without any."""
    if not compared.any():
        return 0.0
    return _as_scored(trial, float(values[compared].mean()))


def _as_scored(trial: Trial, score: float) -> float:
    return 1 - score if trial.layout.mirrored else score


def _moved(trial: Trial, test: MeanTest, metric: int, differences: Numbers) -> tuple[MovedCase, ...]:
    """Return the cases that are lower, the largest drop first."""
    own, other = (trial.view(join([trial.view(run) for run in runs])) for runs in (test.own, test.other))
    means = _sides(trial, test, metric)
    failures = [trial.layout.failures(run, metric) for run in (own, other)]
    rows = np.flatnonzero(np.nan_to_num(differences) < -ROUNDING).tolist()
    return tuple(
        MovedCase(
            case_id=trial.layout.case_ids[row],
            current=_as_scored(trial, float(means[0][row])),
            control=_as_scored(trial, float(means[1][row])),
            current_failures=_counted(trial, *(int(counts[row]) for counts in failures[0])),
            control_failures=_counted(trial, *(int(counts[row]) for counts in failures[1])),
        )
        for row in sorted(rows, key=lambda row: (differences[row], row))
    )


def _counted(trial: Trial, failed: int, of: int) -> Failures | None:
    return trial.layout.as_scored(Failures(failed, of)) if of else None
