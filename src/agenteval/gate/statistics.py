"""The tests of the gate on means: Student's t over cases, over passes and over runs, and its interval.

Values are scores of 0..1, or the negative logarithm of an amount; a p is a one-sided probability of 0..1 that a
difference as large would be seen without any change. Only the standard library is used, for numpy is slow to import.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from agenteval.core.statistics import student_t_cdf, student_t_quantile
from agenteval.gate.values import mean

# Spreads below this one are rounding: all values are equal.
_NO_SPREAD = 1e-12


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
    return student_t_cdf(centre / (spread / math.sqrt(number)), number - 1)


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
    return student_t_cdf((difference + slack) / error, freedom)


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
    reach = student_t_quantile(limit, freedom) * error
    return difference + reach, difference - reach


def p_of_next(value: float, earlier: Sequence[float], slack: float = 0.0) -> float:
    """Return the p that one further value is below earlier ones of its kind: Student's t of a prediction."""
    number = len(earlier)
    spread = math.sqrt(_squares(earlier) / (number - 1)) * math.sqrt(1 + 1 / number)
    return student_t_cdf((value - mean(earlier) + slack) / max(spread, 1e-9), number - 1)


def variance(values: Sequence[float]) -> float:
    """Return the sample variance of at least two values."""
    return _squares(values) / (len(values) - 1)


def _squares(values: Sequence[float]) -> float:
    centre = mean(values)
    return math.fsum((value - centre) ** 2 for value in values)
