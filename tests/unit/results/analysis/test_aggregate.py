from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.unit.results.analysis.answers import scores

from agenteval.results.rollup import final_score, passes
from agenteval.suite.evaluation import Aggregate

_NAMES = ("a", "b", "c", "d")
some_scores = st.dictionaries(st.sampled_from(_NAMES), st.none() | scores)
weights = st.dictionaries(st.sampled_from(_NAMES), st.floats(0, 5))


def test_weighted_sum_divides_by_the_weights_that_took_part() -> None:
    aggregate = Aggregate("weighted_sum", 0.7, {"a": 1, "b": 3})
    assert final_score({"a": 1.0, "b": 0.5}, aggregate) == pytest.approx(2.5 / 4)
    assert final_score({"a": 1.0, "b": None}, aggregate) == 1.0


def test_average_counts_every_metric_with_a_weight_once() -> None:
    aggregate = Aggregate("average", 0.7, {"a": 1, "b": 3, "c": 0})
    assert final_score({"a": 1.0, "b": 0.5, "c": 0.0}, aggregate) == pytest.approx(0.75)


def test_a_metric_without_a_weight_weighs_one() -> None:
    assert final_score({"a": 0.0, "b": 1.0}, Aggregate(weights={"a": 3})) == pytest.approx(0.25)


@pytest.mark.parametrize("found", [{}, {"a": None}, {"z": 0.5}])
def test_without_scores_there_is_no_mean(found: dict[str, float | None]) -> None:
    assert final_score(found, Aggregate(weights={"z": 0})) is None


def test_a_sum_of_floats_does_not_miss_its_threshold() -> None:
    aggregate = Aggregate(threshold=0.7, weights={"a": 0.1, "b": 0.2, "c": 0.3})
    score = final_score({"a": 0.7, "b": 0.7, "c": 0.7}, aggregate)
    assert passes(score, 0.7)
    assert passes(0.6999, 0.7) is False
    assert passes(None, 0.7) is None


@given(found=some_scores, weighted=weights)
def test_both_methods_are_numpy_averages(found: dict[str, float | None], weighted: dict[str, float]) -> None:
    present = {name: score for name, score in found.items() if score is not None}
    by_weight = [(score, weighted.get(name, 1.0)) for name, score in present.items() if weighted.get(name, 1.0) > 0]
    # Weights whose sum underflows are no weights.
    assume(by_weight and sum(weight for _, weight in by_weight) > 1e-200)
    values, shares = zip(*by_weight, strict=True)
    expected = np.average(values, weights=np.array(shares) / max(shares))
    assert final_score(found, Aggregate("weighted_sum", weights=weighted)) == pytest.approx(expected, abs=1e-9)
    assert final_score(found, Aggregate("average", weights=weighted)) == pytest.approx(np.mean(values), abs=1e-9)
