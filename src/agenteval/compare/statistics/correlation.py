"""Correlation of the iterations within a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

# With fewer varying cases, the estimate is too imprecise.
_LEAST_CASES = 5
_GRID = 0.05
_MOST = 0.9


def within_run_correlation(cases: Iterable[Sequence[tuple[int, int]]]) -> float | None:
    """Return the correlation between iterations of a case in one run, rounded to 0.05 so that tables can be reused.

    Pooled one-way analysis of variance with runs as groups (Fisher 1925): (MSB - MSW) / (MSB + (k - 1) MSW), sums
    over cases, never below 0.

    Args:
        cases: for each case, failures and iterations of each run.

    Returns:
        ``None`` if fewer than five cases vary in runs of two or more iterations.
    """
    between = within = 0.0
    sizes: list[int] = []
    varying = 0
    for case in cases:
        runs = [(failed, iterations) for failed, iterations in case if iterations > 1]
        if len(runs) < 2:
            continue
        size = min(iterations for _, iterations in runs)
        rates = [failed / iterations for failed, iterations in runs]
        mean = sum(rates) / len(rates)
        case_between = size * sum((rate - mean) ** 2 for rate in rates) / (len(rates) - 1)
        case_within = sum(rate * (1 - rate) for rate in rates) / len(rates) * size / (size - 1)
        between, within = between + case_between, within + case_within
        sizes.append(size)
        varying += case_between + case_within > 0
    if varying < _LEAST_CASES:
        return None
    correlation = (between - within) / (between + (sum(sizes) / len(sizes) - 1) * within)
    return round(round(min(max(correlation, 0.0), _MOST) / _GRID) * _GRID, 2)
