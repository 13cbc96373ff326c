"""Sums of many scores, in any order of addition."""

from __future__ import annotations

import math
import random

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.runs import case

from agenteval.results.rollup import summarise, total


@given(values=st.lists(st.floats(0, 1), min_size=1), chance=st.randoms())
def test_a_summary_does_not_depend_on_the_order_of_cases(values: list[float], chance: random.Random) -> None:
    cases = [case(str(number), scores=[{"numeric": value}]) for number, value in enumerate(values)]
    assert summarise(cases) == summarise(chance.sample(cases, len(cases)))


def test_sums_of_impossible_scores() -> None:
    assert math.isnan(total([math.inf, -math.inf]))
    assert total([1e308, 1e308]) == math.inf
    assert total([]) == 0.0
