"""Single cases: which are suspected regressions, and the exact test of their re-runs on both sides."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from agenteval.compare.regression.model import Failures
from agenteval.compare.regression.runs import Layout, Numbers, Run
from agenteval.compare.regression.settings import GateSettings
from agenteval.core.statistics import ROUNDING, beta_binomial, fisher_p

# With fewer varying cases, the estimate of the correlation is too imprecise.
_LEAST_CASES = 5
_CORRELATION_STEP = 0.05
_MOST_CORRELATION = 0.9
# Iterations that one look at a case needs.
_LOOK = 3


@dataclass(frozen=True, order=True)
class Candidate:
    """A suspected regression of a case in one metric; the most suspicious one sorts first.

    Args:
        p: Fisher p of the first run against a window of the pool.
    """

    p: float
    case: int
    metric: int
    pool: Failures
    first: Failures

    @property
    def key(self) -> tuple[int, int]:
        """Metric and case."""
        return self.metric, self.case


def find_candidates(first: Run, pool: Sequence[Run], layout: Layout, settings: GateSettings) -> list[Candidate]:
    """Return the cases whose failures rose against one of three windows of the pool, at most ``max_cases``.

    The windows are the newest runs with three iterations, three times as many runs, and the whole pool.
    """
    found = [
        candidate
        for metric in range(len(layout.metrics))
        for candidate in _candidates_of(metric, first, pool, layout, settings)
    ]
    return sorted(found, key=lambda candidate: (candidate.p, candidate.case, candidate.metric))[: settings.max_cases]


def _candidates_of(
    metric: int, first: Run, pool: Sequence[Run], layout: Layout, settings: GateSettings
) -> list[Candidate]:
    failed, counted = layout.failures(first, metric)
    before = [layout.failures(run, metric) for run in reversed(pool)]
    found = []
    for case in np.flatnonzero(failed).tolist():
        now = Failures(int(failed[case]), int(counted[case]))
        runs = max(1, math.ceil(_LOOK / max(int(first.asked[metric][case]), 1)))
        best: Candidate | None = None
        for window in sorted({min(runs, len(pool)), min(3 * runs, len(pool)), len(pool)}):
            past = Failures(
                sum(int(run[0][case]) for run in before[:window]), sum(int(run[1][case]) for run in before[:window])
            )
            p = _suspicion(now, past, settings)
            if p is not None and (best is None or p < best.p):
                best = Candidate(p, case, metric, past, now)
        if best is not None:
            found.append(best)
    return found


def _suspicion(now: Failures, past: Failures, settings: GateSettings) -> float | None:
    """Return Fisher's p if the failures rose enough; ``None`` if they did not."""
    if not past.of or now.share - past.share < settings.case_drop - ROUNDING:
        return None
    p = fisher_p(past.failed, past.of, now.failed, now.of)
    # A case that always passed and now never does is worth a look, however few iterations a test would have.
    is_flip = past.failed == 0 and now.failed == now.of
    return p if p <= settings.case_fisher or is_flip else None


@lru_cache(maxsize=1)
def _failure_rates() -> Numbers:
    return np.concatenate([np.logspace(-4, -2, 10), np.linspace(0.015, 0.985, 98)])


@lru_cache(maxsize=512)
def _chances(iterations: int, correlation: float) -> Numbers:
    """Return the probability of 0, 1, … failures (rows) for each failure rate of a grid (columns)."""
    return np.array([beta_binomial(iterations, rate, correlation) for rate in _failure_rates().tolist()]).T


@lru_cache(maxsize=4096)
def rerun_q(current: Failures, control: Failures, correlation: float) -> float:
    """Return the probability of re-runs that differ as much without a change; 1 if a side has no iteration.

    It is the largest value over all failure rates of P(Fisher's p is at most the one seen), both sides beta-binomial.

    Args:
        current: failures of the agent under test.
        correlation: correlation of iterations within a run.
    """
    if not current.of or not control.of:
        return 1.0
    seen = fisher_p(control.failed, control.of, current.failed, current.of)
    ours, theirs = _chances(current.of, correlation), _chances(control.of, correlation)
    theirs_at_most = np.cumsum(theirs, axis=0)
    total = np.zeros(ours.shape[1])
    # Fisher's p rises with the control's failures and falls with the others, so the limit below only moves up.
    most = -1
    for failed in range(current.of + 1):
        while (most + 1) * current.of <= failed * control.of and fisher_p(
            most + 1, control.of, failed, current.of
        ) <= seen + ROUNDING:
            most += 1
        if most >= 0:
            total += ours[failed] * theirs_at_most[most]
    return min(1.0, float(total.max()))


def within_run_correlation(
    pool: Sequence[Run], metric: int, without: Collection[int], layout: Layout, settings: GateSettings
) -> float:
    """Return the correlation of a metric's iterations within a run, rounded to 0.05.

    Pooled one-way analysis of variance with runs as groups (Fisher 1925), over the cases that all runs contain.

    Args:
        without: cases to leave out: one that changed for good would look like correlation.
        settings: ``prior_correlation`` is returned if the pool is too small.
    """
    counts = [layout.failures(run, metric) for run in pool]
    rest = np.setdiff1d(np.arange(len(layout.case_ids)), list(without))
    iterations = np.min([run.asked[metric][rest] for run in pool], axis=0)
    scored = np.stack([of[rest] for _, of in counts], axis=1)
    usable = (scored > 0).all(axis=1) & (iterations > 1)
    if len(pool) < 2 or not usable.any():
        return settings.prior_correlation
    size = iterations[usable]
    rates = np.stack([failed[rest] for failed, _ in counts], axis=1)[usable] / scored[usable]
    between = size * rates.var(axis=1, ddof=1)
    within = (rates * (1 - rates)).mean(axis=1) * size / (size - 1)
    if int((between + within > 0).sum()) < _LEAST_CASES:
        return settings.prior_correlation
    spread = float(between.sum() + ((size - 1) * within).sum())
    share = min(max(float(between.sum() - within.sum()) / max(spread, 1e-12), 0.0), _MOST_CORRELATION)
    return round(round(share / _CORRELATION_STEP) * _CORRELATION_STEP, 2)
