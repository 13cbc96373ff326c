from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.results.analysis.answers import answer, durations, many, shuffled

from agenteval.results.analysis.answers import EvaluatedAnswer, averaged, fences, find_outliers
from agenteval.suite.evaluation import Analyses, OutlierHandling


def _timed(times: list[float]) -> list[EvaluatedAnswer]:
    return [answer(0.9, time, name=str(number)) for number, time in enumerate(times)]


def test_a_slow_answer_is_an_outlier() -> None:
    found = find_outliers(_timed([100, 110, 120, 130, 140, 150, 9000]))
    assert [item.value for item in found.durations.outliers] == [9000]
    assert found.scores.outliers == ()


@pytest.mark.parametrize("times", [[], [1, 2, 9000], [5, 5, 5, 5, 5, 5, 9000]])
def test_too_few_or_equal_values_have_no_outliers(times: list[float]) -> None:
    assert find_outliers(_timed(times)).durations.fences is None


@given(st.lists(durations, min_size=4, max_size=60))
def test_fences_are_the_quartiles_and_one_and_a_half_ranges(times: list[float]) -> None:
    lower, _, upper = statistics.quantiles(times, n=4)
    found = fences(times)
    if upper > lower:
        assert found is not None
        assert found.lower == pytest.approx(lower - 1.5 * (upper - lower))
        assert found.upper == pytest.approx(upper + 1.5 * (upper - lower))
    else:
        assert found is None


@given(st.lists(durations, min_size=4, max_size=60), st.integers())
def test_outliers_do_not_depend_on_the_order(times: list[float], seed: int) -> None:
    answers = _timed(times)
    assert find_outliers(answers) == find_outliers(shuffled(answers, seed))


@given(st.lists(durations, min_size=4, max_size=60))
def test_removing_outliers_leaves_those_inside_and_changes_the_mean_accordingly(times: list[float]) -> None:
    answers = _timed(times)
    found = find_outliers(answers)
    kept = averaged(answers, found, Analyses(outlier_handling="remove"))
    outside = {item.value for item in found.durations.outliers}
    assert sorted(item.duration_ms or 0 for item in kept.timed) == sorted(set_free(times, outside))
    assert found.durations.usual.mean == pytest.approx(statistics.fmean(item.duration_ms or 0 for item in kept.timed))
    assert list(kept.scored) == answers


def set_free(times: list[float], outside: set[float]) -> list[float]:
    return [time for time in times if time not in outside]


@pytest.mark.parametrize("handling", ["include", "analyze_separately"])
def test_other_handlings_keep_everything(handling: OutlierHandling) -> None:
    answers = many()
    kept = averaged(answers, find_outliers(answers), Analyses(outlier_handling=handling))
    assert kept.scored is answers
    assert kept.timed is answers


def test_unusual_scores_and_times_are_removed_apart() -> None:
    answers = [answer(0.8 + number / 100, 100.0 + number, name=str(number)) for number in range(12)]
    answers += [answer(0.0, 105.0, name="bad"), answer(0.85, 9000.0, name="slow"), answer(None, None, name="nothing")]
    kept = averaged(answers, find_outliers(answers), Analyses(outlier_handling="remove"))
    assert {item.name for item in kept.scored} == {item.name for item in answers} - {"bad"}
    assert {item.name for item in kept.timed} == {item.name for item in answers} - {"slow"}
