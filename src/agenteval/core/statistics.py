"""Probability distributions, exact tests, and the correction for multiple tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

_NORMAL = NormalDist()

_TINY = 1e-300

# From here on, Stirling's series for lgamma is exact to about 1e-14.
_STIRLING_FROM = 10.0


def student_t_cdf(t: float, df: float) -> float:
    """Return P(T <= t) of Student's t with ``df`` > 0 degrees of freedom (Abramowitz and Stegun 26.7.1)."""
    if math.isinf(t):
        return 0.0 if t < 0 else 1.0
    square = t * t
    tail = 0.5 * _incomplete_beta(df / 2, 0.5, df / (df + square), square / (df + square))
    return tail if t < 0 else 1 - tail


@lru_cache(maxsize=4096)
def student_t_quantile(p: float, df: float) -> float:
    """Return the t with P(T <= t) = p, 0 < p < 1, by Newton's method inside a bracket."""
    if not 0 < p < 1:
        raise ValueError(f"p is {p:g}; it must lie between 0 and 1")
    if p < 0.5:
        return -student_t_quantile(1 - p, df)
    low, high = 0.0, 1.0
    while student_t_cdf(high, df) < p:
        low, high = high, 2 * high
    t = min(max(_NORMAL.inv_cdf(p), low), high)
    for _ in range(100):
        excess = student_t_cdf(t, df) - p
        low, high = (t, high) if excess < 0 else (low, t)
        step = t - excess / _student_t_density(t, df)
        following = step if low < step < high else (low + high) / 2
        if abs(following - t) <= 1e-13 * (1 + t):
            return following
        t = following
    return t


def fisher_p(failures_before: int, n_before: int, failures_after: int, n_after: int) -> float:
    """Return the one-sided p of Fisher's exact test that failures became more frequent (Fisher 1934)."""
    failures = failures_before + failures_after
    # Number of ways to have x of all failures after the change; each value follows from the previous one.
    x, last = max(failures_after, failures - n_before), min(n_after, failures)
    ways = math.comb(n_after, x) * math.comb(n_before, failures - x)
    extreme = 0
    while x <= last:
        extreme += ways
        ways = ways * (n_after - x) * (failures - x) // ((x + 1) * (n_before - failures + x + 1))
        x += 1
    return extreme / math.comb(n_before + n_after, failures)


def _student_t_density(t: float, df: float) -> float:
    return math.exp(-_log_beta(df / 2, 0.5) - 0.5 * math.log(df) - (df + 1) / 2 * math.log1p(t * t / df))


def _incomplete_beta(a: float, b: float, x: float, y: float) -> float:
    """Return the regularised incomplete beta I_x(a, b); ``y`` is 1 - x, passed separately to keep its precision."""
    if x <= 0 or y <= 0:
        return 0.0 if x <= 0 else 1.0
    log_x = math.log(x) if x < 0.5 else math.log1p(-y)
    log_y = math.log(y) if y < 0.5 else math.log1p(-x)
    front = math.exp(a * log_x + b * log_y - _log_beta(a, b))
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(a, b, x) / a
    return 1 - front * _beta_fraction(b, a, y) / b


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta (Abramowitz and Stegun 26.5.8), by Lentz's method."""
    c, d = 1.0, 1 / _nonzero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 100_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for numerator in (even, odd):
            d = 1 / _nonzero(1 + numerator * d)
            c = _nonzero(1 + numerator / c)
            value *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return value


def _nonzero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def _log_beta(a: float, b: float) -> float:
    """Return log B(a, b); lgamma alone loses precision if one of the two is large."""
    large, small = max(a, b), min(a, b)
    if large < _STIRLING_FROM:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    total = large + small
    difference = small - small * math.log(total) - (large - 0.5) * math.log1p(small / large)
    return math.lgamma(small) + difference + _stirling_rest(large) - _stirling_rest(total)


def _stirling_rest(x: float) -> float:
    """Return lgamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2)  (Abramowitz and Stegun 6.1.41)."""
    inverse = 1 / (x * x)
    return (1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse * (1 / 1680 - inverse / 1188)))) / x


# Scores and sums of scores count as equal if they differ by less.
ROUNDING = 1e-9


def holm(p_values: Sequence[float], alpha: float, family: int) -> list[bool]:
    """Return which hypotheses are rejected at a family-wise error rate of ``alpha`` (Holm 1979).

    Args:
        p_values: the p values of the tests that were made; equal ones are processed in their order.
        alpha: error rate of the whole family.
        family: number of possible tests; the error rate is guaranteed only if it is at least ``len(p_values)``.
    """
    limits = holm_limits(p_values, alpha, family)
    return [p <= limit + ROUNDING for p, limit in zip(p_values, limits, strict=True)]


def holm_limits(p_values: Sequence[float], alpha: float, family: int) -> list[float]:
    """Return the p at or below which each hypothesis is rejected; the arguments are those of `holm`."""
    limits = [0.0] * len(p_values)
    limit, has_stopped = 0.0, False
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if not has_stopped:
            limit = alpha / max(family - rank, 1)
            has_stopped = p_values[index] > limit + ROUNDING
        limits[index] = limit
    return limits
