"""The formulas of the gate, against a second way to compute them."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from agenteval.gate.statistics import fisher, interval, p_by_case, p_by_pass, t_quantile, t_tail


def _by_integration(t: float, freedom: int, steps: int = 20_000) -> float:
    """Return the lower tail of Student's t by Simpson's rule over the angle."""
    low, high = -math.pi / 2, math.atan(t / math.sqrt(freedom))
    width = (high - low) / steps
    weights = itertools.chain([1], itertools.cycle([4, 2]))
    points = [*itertools.islice(weights, steps), 1]
    area = sum(w * math.cos(low + n * width) ** (freedom - 1) for n, w in enumerate(points)) * width / 3
    return area * math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)


@pytest.mark.parametrize("freedom", [1, 2, 3, 6, 14, 30, 200])
@pytest.mark.parametrize("t", [-40.0, -5.0, -2.1, -0.7, 0.0, 0.3, 1.9])
def test_t_equals_its_integral(t: float, freedom: int) -> None:
    assert t_tail(t, freedom) == pytest.approx(_by_integration(t, freedom), abs=1e-9)


@pytest.mark.parametrize("p", [0.0001, 0.002, 0.05, 0.5, 0.8])
def test_the_quantile_is_the_inverse(p: float) -> None:
    assert t_tail(t_quantile(p, 30), 30) == pytest.approx(p, rel=1e-6)


def test_fisher_counts_the_ways_to_place_the_failures() -> None:
    for n, m in itertools.product(range(1, 6), repeat=2):
        for failed, base in itertools.product(range(n + 1), range(m + 1)):
            places = list(itertools.combinations(range(n + m), failed + base))
            worse = sum(sum(place < n for place in chosen) >= failed for chosen in places)
            assert fisher(failed, n, base, m) == pytest.approx(worse / len(places))


def test_the_upper_end_is_below_zero_exactly_where_p_is_below_the_limit() -> None:
    rng = random.Random(5)
    seen = set()
    for _ in range(2000):
        size = rng.choice([4, 8, 16])
        here = [rng.gauss(-0.05, 0.1) for _ in range(size)]
        there = [rng.gauss(0, 0.1) for _ in range(size)]
        limit = rng.choice([0.002, 0.006, 0.017, 0.05])
        below = interval(here, there, limit)[1] < 0
        assert below == (p_by_pass(here, there) <= limit)
        seen.add(below)
    assert seen == {True, False}


def test_equal_passes_are_proven_by_their_order() -> None:
    assert p_by_pass([0.0] * 4, [1.0] * 4) == pytest.approx(1 / 70)
    assert p_by_pass([1.0] * 4, [1.0] * 4) == 1
    assert p_by_pass([0.0], [1.0] * 8) == 1, "one pass says nothing"


def test_equal_differences_of_cases_are_tosses_of_a_coin() -> None:
    assert p_by_case([-0.5] * 4) == pytest.approx(1 / 16)
    assert p_by_case([0.0] * 4) == 0.5
    assert p_by_case([-1.0]) == 1


def test_slack_allows_as_much() -> None:
    assert p_by_case([-0.1, -0.11, -0.09, -0.1], slack=0.2) > 0.5
    assert p_by_pass([-0.1, -0.12, -0.11, -0.1], [0.0, 0.01, 0.0, 0.01], slack=0.2) > 0.5
