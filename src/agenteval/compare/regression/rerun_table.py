"""Exact p-values of single cases that were selected against the pool, and then re-run without a control.

A case that was selected for its failures is not a random case, so the p-value of a plain Fisher test over all its
iterations is too small. The p-values here are conditional: given that the failures of the first comparison add up to
a total that a candidate can have. They are valid for every pass rate (the maximum over a grid), and for iterations
that are correlated within their run (beta-binomial).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from agenteval.compare.regression.runs import Numbers
from agenteval.core.statistics import ROUNDING, beta_binomial, fisher_p

# Fisher's p-values of two outcomes are equal if they differ by less than this.
_SAME = 1e-12


@lru_cache(maxsize=1)
def _failure_rates() -> Numbers:
    """Return the grid: 150 failure rates, dense near 0 and 1, where a p-value may have its maximum."""
    near_zero = np.geomspace(1e-4, 1e-2, 15)
    return np.concatenate([near_zero, np.linspace(0.01, 0.99, 120), 1 - near_zero[::-1]])


@dataclass(frozen=True)
class CaseDesign:
    """The number of iterations of a case, which determines the possible outcomes.

    Args:
        baseline: iterations of its baseline runs, sorted.
        current: iterations of the pull request's run.
    """

    baseline: tuple[int, ...]
    current: int

    def is_candidate(self, baseline_failures: int, current_failures: int, drop: float) -> bool:
        """Return whether the pass rate dropped by at least ``drop``."""
        return is_drop(baseline_failures, sum(self.baseline), current_failures, self.current, drop)


def is_drop(failures_before: int, n_before: int, failures_after: int, n_after: int, drop: float) -> bool:
    """Return whether the pass rate dropped by at least ``drop`` (0..1)."""
    return failures_after / n_after - failures_before / n_before >= drop - ROUNDING


@lru_cache(maxsize=4096)
def candidate_totals(design: CaseDesign, drop: float) -> frozenset[int]:
    """Return the total failures, of baseline and pull request together, that a candidate of this design can have."""
    return frozenset(
        before + after
        for before in range(sum(design.baseline) + 1)
        for after in range(design.current + 1)
        if design.is_candidate(before, after, drop)
    )


@dataclass(frozen=True)
class CaseTable:
    """The p-value of every outcome that can count as a regression; 1 for all others."""

    p_values: dict[tuple[int, ...], float]

    def p(self, *outcome: int) -> float:
        """Return the p-value of an outcome: failures of the baseline (or control), of the run, of the re-runs."""
        return self.p_values.get(outcome, 1.0)


@lru_cache(maxsize=4096)
def rerun_table(design: CaseDesign, repeats: int, correlation: float, drop: float) -> CaseTable:
    """Return the p-values of (baseline failures, failures of the first run, failures of the re-runs).

    q = sup over the pass rate of  P(as extreme, a candidate, and the re-runs show the drop as well) / P(the first two
    totals are testable). Outcomes are ordered by Fisher's p-value of all iterations together.

    Args:
        design: iterations of the case before its re-runs.
        correlation: correlation of iterations within a run; the re-runs count as one run.
        drop: drop of the pass rate that makes a case a candidate.
    """
    before = np.ones((1, len(_failure_rates())))
    for iterations in design.baseline:
        before = _convolve(before, _failures(iterations, correlation))
    now, again = _failures(design.current, correlation), _failures(repeats, correlation)
    n_before, n_after = sum(design.baseline), design.current + repeats
    outcomes = [
        (failed_before, failed_now, failed_again)
        for failed_before in range(n_before + 1)
        for failed_now in range(design.current + 1)
        if design.is_candidate(failed_before, failed_now, drop)
        for failed_again in range(repeats + 1)
        if is_drop(failed_before, n_before, failed_again, repeats, drop)
    ]
    if not outcomes:
        return CaseTable({})
    fisher = np.array([fisher_p(b, n_before, n + a, n_after) for b, n, a in outcomes])
    b, n, a = np.array(outcomes).T
    testable = _convolve(before, now)[sorted(candidate_totals(design, drop))].sum(axis=0)
    return _table(outcomes, fisher, before[b] * now[n] * again[a], testable)


def _table(outcomes: Sequence[tuple[int, ...]], fisher: Numbers, chances: Numbers, given: Numbers) -> CaseTable:
    order = np.argsort(fisher, kind="stable")
    tails = (np.cumsum(chances[order], axis=0) / np.maximum(given, 1e-300)).max(axis=1)
    last_as_extreme = np.searchsorted(fisher[order], fisher + _SAME, side="right") - 1
    p_values = np.minimum(1.0, tails[last_as_extreme])
    return CaseTable(dict(zip(outcomes, p_values.tolist(), strict=True)))


@lru_cache(maxsize=1024)
def _failures(iterations: int, correlation: float) -> Numbers:
    """Return the probability of 0, 1, ... failures in one run (rows), for each failure rate of the grid (columns)."""
    return np.array([beta_binomial(iterations, rate, correlation) for rate in _failure_rates().tolist()]).T


def _convolve(first: Numbers, second: Numbers) -> Numbers:
    """Return the distribution of the sum of two independent counts."""
    total = np.zeros((len(first) + len(second) - 1, first.shape[1]))
    for count, chances in enumerate(first):
        total[count : count + len(second)] += chances * second
    return total
