"""The four tests of the gate: Student's t over cases and over passes, its interval, and Fisher's exact test.

Values are scores of 0..1, or the negative logarithm of an amount; a p is a one-sided probability of 0..1 that a
difference as large would be seen without any change. Only the standard library is used, for numpy is slow to import.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

# Spreads below this one are rounding: all values are equal.
_NO_SPREAD = 1e-12
# Steps of the continued fraction, and of the search for a quantile.
_STEPS = 300
_HALVINGS = 80
# Terms of the continued fraction that change the value by less than this do not count.
_PRECISE = 1e-10


def t_tail(t: float, freedom: float) -> float:
    """Return the probability that Student's t is below a value.

    Half of the regularised incomplete beta function, by its continued fraction with Lentz's method (Press et al.,
    Numerical Recipes, 3rd edition, sections 5.2 and 6.4).
    """
    if t > 0:
        return 1 - t_tail(-t, freedom)
    x, a, b = freedom / (freedom + t * t), freedom / 2, 0.5
    if x >= 1:
        return 0.5
    # The fraction converges quickly on one side of the mean; the other side is its complement.
    if is_mirrored := x > (a + 1) / (a + b + 2):
        x, a, b = 1 - x, b, a
    tail = _incomplete_beta(x, a, b)
    return 0.5 * (1 - tail if is_mirrored else tail)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    if x <= 0:
        return 0.0
    logarithm = a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction = d
    for step in range(1, _STEPS):
        even = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        for term in (even, odd):
            d, c = 1 / (1 + term * d), 1 + term / c
            fraction *= c * d
        if abs(c * d - 1) < _PRECISE:
            break
    return math.exp(logarithm) / a * fraction


def t_quantile(p: float, freedom: float) -> float:
    """Return the value below which Student's t lies with a probability of ``p``."""
    low, high = -1e4, 1e4
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if t_tail(middle, freedom) < p else (low, middle)
    return (low + high) / 2


def p_by_case(differences: Sequence[float], slack: float = 0.0) -> float:
    """Return the p that the mean of paired differences is below ``-slack``: Student's t over the cases.

    Equal differences have no spread, so each counts as the toss of a coin.

    Args:
        slack: how much worse is allowed, in the same units.
    """
    number = len(differences)
    if number < 2:
        return 1.0
    centre = mean(differences) + slack
    spread = math.sqrt(_squares(differences) / (number - 1))
    if centre >= 0:
        return 0.5 if spread < _NO_SPREAD else 1.0
    if spread < _NO_SPREAD:
        return 0.5**number
    return t_tail(centre / (spread / math.sqrt(number)), number - 1)


def p_by_pass(here: Sequence[float], there: Sequence[float], slack: float = 0.0, fewest: int = 2) -> float:
    """Return the p that passes of one side are worse than those of the other: Student's t of two groups.

    Without any spread every order of the passes is equally likely, so p is the share of the order that was seen.

    Args:
        slack: how much worse is allowed.
        fewest: passes that each side needs at least; with less p is 1.
    """
    if min(len(here), len(there)) < fewest or len(here) + len(there) < 3:
        return 1.0
    difference, error, freedom = two_groups(here, there)
    if error < _NO_SPREAD:
        return 1 / math.comb(freedom + 2, len(here)) if difference + slack < -_NO_SPREAD else 1.0
    return t_tail((difference + slack) / error, freedom)


def two_groups(here: Sequence[float], there: Sequence[float]) -> tuple[float, float, int]:
    """Return the difference of the means of two groups, its pooled standard error, and its degrees of freedom."""
    freedom = len(here) + len(there) - 2
    variance = (_squares(here) + _squares(there)) / max(freedom, 1)
    return mean(here) - mean(there), math.sqrt(variance * (1 / len(here) + 1 / len(there))), freedom


def interval(here: Sequence[float], there: Sequence[float], limit: float) -> tuple[float, float]:
    """Return the interval of the difference that belongs to a limit of p.

    Its upper end is below ``-slack`` exactly where ``p_by_pass`` is below the limit.
    """
    difference, error, freedom = two_groups(here, there)
    reach = t_quantile(limit, freedom) * error
    return difference + reach, difference - reach


def fisher(failed: int, of: int, base_failed: int, base_of: int) -> float:
    """Return the p that the share of failures is higher here than on the base: Fisher's exact test."""
    total = failed + base_failed
    ways = sum(math.comb(of, x) * math.comb(base_of, total - x) for x in range(failed, min(of, total) + 1))
    return ways / math.comb(of + base_of, total)


def p_of_next(value: float, earlier: Sequence[float], slack: float = 0.0) -> float:
    """Return the p that one further value is below earlier ones of its kind: Student's t of a prediction.

    Args:
        slack: how much worse is allowed.
    """
    number = len(earlier)
    spread = math.sqrt(_squares(earlier) / (number - 1)) * math.sqrt(1 + 1 / number)
    return t_tail((value - mean(earlier) + slack) / max(spread, 1e-9), number - 1)


def mean(values: Sequence[float]) -> float:
    """Return the mean of at least one value."""
    return math.fsum(values) / len(values)


def variance(values: Sequence[float]) -> float:
    """Return the sample variance of at least two values."""
    return _squares(values) / (len(values) - 1)


def _squares(values: Sequence[float]) -> float:
    """Return the sum of the squared distances from the mean."""
    centre = mean(values)
    return math.fsum((value - centre) ** 2 for value in values)
