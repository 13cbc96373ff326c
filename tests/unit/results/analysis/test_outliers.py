from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.results.analysis.answers import answer, durations

from agenteval.results.analysis.answers import EvaluatedAnswer
from agenteval.results.analysis.summary import fences, find_outliers


def _timed(times: list[float]) -> list[EvaluatedAnswer]:
    return [answer(0.9, time, name=str(number)) for number, time in enumerate(times)]


def test_a_slow_answer_is_an_outlier() -> None:
    answers = _timed([100, 110, 120, 130, 140, 150, 9000])
    assert [item["value"] for item in find_outliers(answers, "duration_ms").listed] == [9000]
    assert find_outliers(answers, "final_score").listed == []


@pytest.mark.parametrize("times", [[], [1, 2, 9000], [5, 5, 5, 5, 5, 5, 9000]])
def test_too_few_or_equal_values_have_no_outliers(times: list[float]) -> None:
    assert fences(times) is None
    answers = _timed(times)
    assert find_outliers(answers, "duration_ms").usual == answers


@given(st.lists(durations, min_size=4, max_size=60))
def test_fences_are_the_quartiles_and_one_and_a_half_ranges(times: list[float]) -> None:
    lower, _, upper = statistics.quantiles(times, n=4)
    found = fences(times)
    if upper > lower:
        assert found is not None
        assert found[0] == pytest.approx(lower - 1.5 * (upper - lower))
        assert found[1] == pytest.approx(upper + 1.5 * (upper - lower))
    else:
        assert found is None


def test_unusual_scores_and_times_are_found_apart() -> None:
    answers = [answer(0.8 + number / 100, 100.0 + number, name=str(number)) for number in range(12)]
    answers += [answer(0.0, 105.0, name="bad"), answer(0.85, 9000.0, name="slow"), answer(None, None, name="nothing")]
    everything = {item.name for item in answers}
    assert {item.name for item in find_outliers(answers, "final_score").usual} == everything - {"bad"}
    assert {item.name for item in find_outliers(answers, "duration_ms").usual} == everything - {"slow"}
