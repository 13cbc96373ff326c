"""Statistics, computed in another way than the program does: in exact fractions, or by adding up densities."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from statistics import NormalDist

_STEPS = 4000


def mean(values: Sequence[Fraction | int]) -> Fraction:
    return Fraction(sum(values)) / len(values)


def deviation(values: Sequence[Fraction | int]) -> float:
    middle = mean(values)
    return math.sqrt(sum((value - middle) ** 2 for value in values) / (len(values) - 1))


def quartile(values: Iterable[Fraction | int], which: int) -> Fraction:
    """By the exclusive method: the place in a list of n is which · (n + 1) / 4, counted from 1."""
    ordered = sorted(map(Fraction, values))
    place = Fraction(which * (len(ordered) + 1), 4)
    below = math.floor(place)
    return ordered[below - 1] + (place - below) * (ordered[below] - ordered[below - 1])


def fences(values: Sequence[Fraction | int]) -> tuple[Fraction, Fraction]:
    """Tukey's: one and a half interquartile ranges outside the quartiles."""
    low, high = quartile(values, 1), quartile(values, 3)
    reach = Fraction(3, 2) * (high - low)
    return low - reach, high + reach


def percentile(values: Iterable[int], share: Fraction) -> Fraction:
    """Linear between the two nearest values."""
    ordered = sorted(map(Fraction, values))
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def wilson(successes: int, trials: int, confidence: float) -> tuple[float, float]:
    """The shares p for which |share - p| is z standard errors of p: the roots of a quadratic equation."""
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share, weight = successes / trials, z * z / trials
    a, b, c = 1 + weight, -(2 * share + weight), share * share
    root = math.sqrt(b * b - 4 * a * c)
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def fisher(successes: int, trials: int, other_successes: int, other_trials: int) -> float:
    """Twice the smaller tail of the hypergeometric distribution."""
    together = successes + other_successes
    ways = {
        count: math.comb(trials, count) * math.comb(other_trials, together - count)
        for count in range(max(0, together - other_trials), min(trials, together) + 1)
    }
    low = sum(way for count, way in ways.items() if count <= successes)
    high = sum(way for count, way in ways.items() if count >= successes)
    return min(1.0, float(Fraction(2 * min(low, high), math.comb(trials + other_trials, together))))


def student(t: float, freedom: float) -> float:
    """The probability that Student's t lies between -t and t, by Simpson's rule."""
    factor = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    step = t / _STEPS
    heights: list[float] = [
        (1 + (step * place) ** 2 / freedom) ** (-(freedom + 1) / 2) for place in range(_STEPS + 1)
    ]
    return 2 * factor * step / 3 * (heights[0] + heights[-1] + 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2]))


def welch(values: Sequence[Fraction], others: Sequence[Fraction]) -> float:
    """Two-sided p that the means differ, without assuming equal variances."""
    errors = [deviation(group) ** 2 / len(group) for group in (values, others)]
    freedom = sum(errors) ** 2 / (errors[0] ** 2 / (len(values) - 1) + errors[1] ** 2 / (len(others) - 1))
    return 1 - student(abs(float(mean(values) - mean(others))) / math.sqrt(sum(errors)), freedom)
