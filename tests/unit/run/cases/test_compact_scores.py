"""Scores of very many cases, and sums of them, whatever order they come in."""

from __future__ import annotations

import math
import random

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.runs import case

from agenteval.results.rollup import summarise, total
from agenteval.run.cases.compact_scores import CompactScores

SCORES = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.lists(st.floats(0, 1), max_size=3), max_size=3)


@given(by_position=st.dictionaries(st.integers(0, 50), SCORES), chance=st.randoms())
def test_what_is_put_in_comes_out(by_position: dict[int, dict[str, list[float]]], chance: random.Random) -> None:
    compact = CompactScores()
    for position in chance.sample(sorted(by_position), len(by_position)):
        compact.add(position, by_position[position])
    for position in range(60):
        found = compact.get(position)
        assert found == by_position.get(position)
        assert found is None or list(found) == list(by_position[position])


@given(values=st.lists(st.floats(0, 1), min_size=1), chance=st.randoms())
def test_a_summary_is_the_same_in_whatever_order_cases_come(values: list[float], chance: random.Random) -> None:
    cases = [case(str(number), scores=[{"numeric": value}]) for number, value in enumerate(values)]
    assert summarise(cases) == summarise(chance.sample(cases, len(cases)))


def test_sums_of_what_no_score_should_be() -> None:
    assert math.isnan(total([math.inf, -math.inf]))
    assert total([1e308, 1e308]) == math.inf
    assert total([]) == 0.0
