"""An earlier attempt was red: what it lost counts as lost until a full comparison shows less than half of it."""

from __future__ import annotations

import numpy as np

from agenteval.compare.regression.case_test import Candidate
from agenteval.compare.regression.mean_proof import compare_side_by_side, mean_over_runs
from agenteval.compare.regression.model import Burden, Failures
from agenteval.compare.regression.runs import Run
from agenteval.compare.regression.trial import SIDES, Asking, CaseRecord, Trial
from agenteval.core.statistics import ROUNDING


def refute(trial: Trial, burden: Burden) -> Asking[None]:
    """Make the runs that could refute a burden; notes what is still lost as proven."""
    means, cases = _in_layout(trial, burden)
    if cases:
        yield from _refute_cases(trial, cases)
    if means and not trial.is_red:
        yield from compare_side_by_side(trial, [], 1, means, "memory")
    if not trial.is_red:
        trial.test = None


def carry(trial: Trial, runs: list[Run], burden: Burden) -> None:
    """Note as proven what runs that exist do not refute: at least half of it is left against the pool.

    Args:
        runs: all runs of the change; nothing can run again.
        burden: what an earlier attempt has lost.
    """
    means, cases = _in_layout(trial, burden)
    trial.reruns = {"current": runs, "control": trial.pool}
    for (metric, case), fall in sorted(cases.items()):
        current, control = (trial.rerun_counts(side, metric, case) for side in SIDES)
        if still_fails(current, control, fall):
            candidate = Candidate(1.0, case, metric, control, current)
            trial.cases[metric, case] = CaseRecord(candidate, current, control, is_proven=True)
            trial.carried_cases[metric, case] = fall
    for metric, drop in sorted(means.items()):
        own = mean_over_runs([trial.view(run) for run in runs], metric)
        fallen = mean_over_runs(trial.pool, metric) - own
        if np.isnan(fallen).all() or float(np.nanmean(fallen)) >= drop / 2 - ROUNDING:
            trial.means.add(metric)
            trial.carried_means[metric] = drop


def _in_layout(trial: Trial, burden: Burden) -> tuple[dict[int, float], dict[tuple[int, int], float]]:
    """Return the drops of means and the falls of cases that are still compared, by their numbers."""
    rows = {case: row for row, case in enumerate(trial.layout.case_ids)}
    metrics = {metric: number for number, metric in enumerate(trial.layout.metrics)}
    drops = {metrics[metric]: drop for metric, drop in burden.means.items() if metric in metrics}
    means = {metric: drops[metric] for metric in trial.counting(drops)}
    cases = {
        (metrics[metric], rows[case]): fall
        for (metric, case), fall in burden.cases.items()
        if metric in metrics and case in rows
    }
    return means, cases


def _refute_cases(trial: Trial, cases: dict[tuple[int, int], float]) -> Asking[None]:
    repeats = trial.settings.case_rounds[-1]
    wanted = {trial.layout.case_ids[case]: repeats for case in sorted({case for _, case in cases})}
    made = yield from trial.ask("memory", ("current", "control"), wanted, is_whole=False)
    trial.stage = "memory"
    for side, run in made.items():
        trial.reruns[side] = [run]
    for (metric, case), fall in sorted(cases.items()):
        current, control = (trial.rerun_counts(side, metric, case) for side in SIDES)
        if still_fails(current, control, fall):
            candidate = Candidate(1.0, case, metric, Failures(0, 0), Failures(0, 0))
            trial.cases[metric, case] = CaseRecord(candidate, current, control, is_proven=True)
            trial.carried_cases[metric, case] = fall
    if not trial.is_red:
        trial.reruns = {"current": [], "control": []}


def still_fails(current: Failures, control: Failures, fall: float) -> bool:
    """Return whether at least half of a proven fall is left. What was not measured refutes nothing."""
    return _share(current, 1.0) - _share(control, 0.0) >= fall / 2 - ROUNDING


def _share(failures: Failures, unknown: float) -> float:
    return failures.failed / failures.of if failures.of else unknown
