"""The formulas of the gate, against a second way to compute them."""

from __future__ import annotations

import random

import pytest

from agenteval.gate.statistics import interval, p_by_case, p_by_pass


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
