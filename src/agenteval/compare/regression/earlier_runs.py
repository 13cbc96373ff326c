"""The decision against earlier runs, for when the control cannot run. Drift looks like a regression here."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from agenteval.compare.regression.case_proof import rerun_current
from agenteval.compare.regression.case_test import Candidate, within_run_correlation
from agenteval.compare.regression.mean_proof import is_low_again, proven_means
from agenteval.compare.regression.rerun_table import CaseDesign, candidate_totals, rerun_table
from agenteval.compare.regression.runs import Numbers, Run
from agenteval.compare.regression.trial import SECOND_EPOCH, Asking, CaseRecord, MeanTest, Trial
from agenteval.core.statistics import ROUNDING, holm_limits, student_t_cdf

#: Both runs of the agent under test against the pool: proven at or below.
MEAN_LIMIT = 0.01
_LEAST_POOL = 3
_CHART_RUNS, _CHART_LIMIT = 5, 0.05
_CASE_DROP = 0.5
_LEAST_REPEATS = 3
#: Re-runs of a case, with the agent under test alone.
MOST_REPEATS = 8


def decide_by_earlier_runs(trial: Trial, candidates: list[Candidate]) -> Asking[bool]:
    """Decide about what is suspicious and not yet dropped; return whether the earlier runs can decide."""
    if len(trial.pool) < _LEAST_POOL or trial.evidence.proves_nothing:
        return False
    is_complete = yield from _decide_cases(trial, candidates)
    if not trial.is_red and trial.watched and trial.is_low_again is not False:
        yield from _decide_means(trial)
    trial.stage = "earlier-runs"
    return is_complete or trial.is_red


def _decide_means(trial: Trial) -> Asking[None]:
    if trial.is_low_again is None and not (yield from is_low_again(trial)):
        return
    if trial.second is not None:
        judge_means(trial, [trial.first, trial.second])
        # The first run was picked because it is low, so the second one alone must be lower too.
        again = trial.compare([trial.view(trial.second)], trial.pool, SECOND_EPOCH).differences
        least = trial.settings.min_effect
        trial.means = {metric for metric in trial.means if again[metric] <= -least + ROUNDING}


def judge_means(trial: Trial, own: list[Run]) -> None:
    """Compare runs of the agent under test with the pool, and note the metrics whose drop is proven."""
    runs = [trial.view(run) for run in own]
    p = trial.against_pool(runs, trial.pool, SECOND_EPOCH)
    differences = trial.compare(runs, trial.pool, SECOND_EPOCH).differences
    found = trial.counting(proven_means(p, differences, MEAN_LIMIT, trial.settings.min_effect))
    trial.means |= {metric for metric in found if _exceeds_drift(runs, trial.pool, metric)}
    trial.test = MeanTest("earlier-runs", own, trial.pool, p, MEAN_LIMIT)


def _exceeds_drift(own: Sequence[Run], pool: Sequence[Run], metric: int) -> bool:
    p = run_chart_p([run.means[metric] for run in own], [run.means[metric] for run in pool])
    return p is None or p <= _CHART_LIMIT + ROUNDING


def run_chart_p(own: Sequence[Numbers], pool: Sequence[Numbers]) -> float | None:
    """Return the one-sided p of the mean of some runs for the spread of the pool's means.

    Student's t for a new mean among R old ones: t = (m − mean(b)) / (s_b sqrt(1/n + 1/R)), R − 1 degrees of freedom,
    over the cases that are in every run.

    Returns:
        ``None`` with fewer than five runs in the pool, or if fewer than half of the cases are in all runs.
    """
    ours, theirs = np.column_stack(own), np.column_stack(pool)
    complete = ~np.isnan(ours).any(axis=1) & ~np.isnan(theirs).any(axis=1)
    compared = ~np.isnan(ours).all(axis=1) & ~np.isnan(theirs).all(axis=1)
    runs = theirs.shape[1]
    if runs < _CHART_RUNS or complete.sum() < max(1, int(compared.sum()) // 2):
        return None
    means = theirs[complete].mean(axis=0)
    difference = float(ours[complete].mean() - means.mean())
    spread = float(means.std(ddof=1))
    if spread < ROUNDING:
        return 0.0 if difference < -ROUNDING else 1.0
    return student_t_cdf(difference / (spread * math.sqrt(1 / ours.shape[1] + 1 / runs)), runs - 1)


def _decide_cases(trial: Trial, candidates: list[Candidate]) -> Asking[bool]:
    """Re-run candidates and compare them with the pool; return whether re-runs could have proven them."""
    open_cases = []
    for candidate in candidates:
        record = trial.cases.setdefault(candidate.key, CaseRecord(candidate))
        # A case with re-runs that was not asked of the control did not fail again.
        if not record.current.of or candidate.key in trial.awaiting_control:
            open_cases.append(candidate)
    is_complete = True
    for metric in sorted({candidate.metric for candidate in open_cases}):
        decided = yield from _decide_metric(trial, metric, [c for c in open_cases if c.metric == metric])
        is_complete = is_complete and decided
    return is_complete


def _decide_metric(trial: Trial, metric: int, candidates: list[Candidate]) -> Asking[bool]:
    rows = {candidate.case for candidate in candidates}
    correlation = within_run_correlation(trial.pool, metric, rows, trial.layout, trial.settings)
    testable = max(_testable(trial, metric), 1)
    alpha = trial.settings.case_alpha / max(len(trial.layout.metrics), 1)
    repeats = _enough_repeats(_design(trial, candidates[0]), correlation, alpha / testable)
    if not repeats:
        return False
    for candidate in candidates:
        made = trial.cases[candidate.key].current.of
        if made < repeats:
            yield from rerun_current(trial, {candidate.key}, repeats - made)
    p_values = [_p_of(trial, candidate, correlation) for candidate in candidates]
    for candidate, p, limit in zip(candidates, p_values, holm_limits(p_values, alpha, testable), strict=True):
        record = trial.cases[candidate.key]
        record.q, record.limit, record.is_proven = p, limit, p <= limit + ROUNDING
    return True


def _p_of(trial: Trial, candidate: Candidate, correlation: float) -> float:
    record = trial.cases[candidate.key]
    if not record.current.of:
        return 1.0
    table = rerun_table(_design(trial, candidate), record.current.of, correlation, _CASE_DROP)
    before = _pool_failures(trial, candidate.metric, candidate.case)
    return table.p(before, candidate.first.failed, record.current.failed)


def _enough_repeats(design: CaseDesign, correlation: float, limit: float) -> int:
    """Return the fewest re-runs that prove a case that always passed and now always fails; 0 for none."""
    for repeats in range(_LEAST_REPEATS, MOST_REPEATS + 1):
        if rerun_table(design, repeats, correlation, _CASE_DROP).p(0, design.current, repeats) <= limit + ROUNDING:
            return repeats
    return 0


def _design(trial: Trial, candidate: Candidate) -> CaseDesign:
    counts = [trial.layout.failures(run, candidate.metric)[1][candidate.case] for run in trial.pool]
    return CaseDesign(tuple(sorted(int(of) for of in counts if of)), candidate.first.of)


def _pool_failures(trial: Trial, metric: int, case: int) -> int:
    return sum(int(trial.layout.failures(run, metric)[0][case]) for run in trial.pool)


def _testable(trial: Trial, metric: int) -> int:
    """Return the number of cases that could have been candidates."""
    before = [trial.layout.failures(run, metric) for run in trial.pool]
    failed, of = trial.layout.failures(trial.view(trial.first), metric)
    count = 0
    for case in np.flatnonzero(of).tolist():
        lengths = tuple(sorted(int(run[1][case]) for run in before if run[1][case]))
        total = int(failed[case]) + sum(int(run[0][case]) for run in before)
        if lengths and total in candidate_totals(CaseDesign(lengths, int(of[case])), _CASE_DROP):
            count += 1
    return count
