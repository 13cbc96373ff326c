"""Scores of many cases, and their sums, in any order of addition."""

from __future__ import annotations

import math
import random

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.runs import case

from agenteval.results.rollup import summarise, total
from agenteval.run.case_store import CompactScores

SCORES = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.lists(st.floats(0, 1), max_size=3), max_size=3)


@given(by_position=st.dictionaries(st.integers(0, 50), SCORES), chance=st.randoms())
def test_added_scores_are_returned(by_position: dict[int, dict[str, list[float]]], chance: random.Random) -> None:
    compact = CompactScores()
    for position in chance.sample(sorted(by_position), len(by_position)):
        compact.add(position, by_position[position])
    for position in range(60):
        found = compact.get(position)
        assert found == by_position.get(position)
        assert found is None or list(found) == list(by_position[position])


@given(values=st.lists(st.floats(0, 1), min_size=1), chance=st.randoms())
def test_a_summary_does_not_depend_on_the_order_of_cases(values: list[float], chance: random.Random) -> None:
    cases = [case(str(number), scores=[{"numeric": value}]) for number, value in enumerate(values)]
    assert summarise(cases) == summarise(chance.sample(cases, len(cases)))


def test_sums_of_impossible_scores() -> None:
    assert math.isnan(total([math.inf, -math.inf]))
    assert total([1e308, 1e308]) == math.inf
    assert total([]) == 0.0
