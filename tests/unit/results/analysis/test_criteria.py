from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.results.analysis.answers import AGGREGATE, answer, summary_of

from agenteval.results.analysis.answers import EvaluatedAnswer
from agenteval.results.analysis.criteria import Check, check_criteria, overall
from agenteval.results.analysis.evaluate import evaluate
from agenteval.results.verdict import criterion_texts
from agenteval.suite.evaluation import Analyses, Criteria, Evaluation


def _check(answers: list[EvaluatedAnswer], criteria: Criteria) -> dict[str, Check]:
    return {check.name: check for check in check_criteria(summary_of(answers), criteria)}


def test_limits_hold_with_equality() -> None:
    answers = [answer(0.7, 1000, metric_scores={"clarity": 0.7}), answer(0.7, 3000, metric_scores={"clarity": 0.7})]
    answers[0] = replace(answers[0], success=False)
    criteria = Criteria(avg_response_ms=2000, max_response_ms=3000, error_rate_percent=50, quality={"clarity": None})
    assert all(check.met for check in _check(answers, criteria).values())
    tighter = Criteria(avg_response_ms=1999, max_response_ms=2999, error_rate_percent=49, quality={"clarity": 0.71})
    assert [check.met for check in _check(answers, tighter).values()] == [False] * 4


def test_a_criterion_without_data_is_not_met_overall() -> None:
    answers = [answer(0.9, None)]
    found = _check(answers, Criteria(all_successful=True, avg_response_ms=10))
    assert (found["all_traces_successful"].met, found["avg_response_time"].met) == (True, None)
    assert overall(found.values()) is False
    assert overall([found["all_traces_successful"]]) is True
    assert overall([]) is None


def test_an_answer_without_a_latency_could_be_the_slow_one() -> None:
    answers = [answer(0.9, 1000), answer(0.9, None), answer(0.9, 1000)]
    limits = Criteria(avg_response_ms=2000, max_response_ms=2000)
    for check in _check(answers, limits).values():
        assert (check.met, check.details["message"]) == (None, "1 of 3 answers without a duration")
    # More latencies only make it worse; and there is no latency without an answer.
    assert {check.met for check in _check(answers, Criteria(max_response_ms=999)).values()} == {False}
    answers[1] = replace(answers[1], success=False)
    assert {check.met for check in _check(answers, limits).values()} == {True}


def test_removed_outliers_count_in_maxima_and_rates_but_not_in_averages() -> None:
    answers = [answer(0.9, 1000.0 + number, name=str(number)) for number in range(20)]
    answers.append(replace(answer(0.9, 60_000.0, name="slow"), success=False))
    criteria = Criteria(avg_response_ms=2000, max_response_ms=2000, error_rate_percent=1)
    kept = evaluate(answers, Evaluation(criteria=criteria), AGGREGATE)
    removed = evaluate(
        answers, Evaluation(criteria=criteria, analyses=Analyses(outliers=True, outlier_handling="remove")), AGGREGATE
    )
    assert [criterion.met for criterion in kept.criteria] == [False, False, False]
    assert [criterion.met for criterion in removed.criteria] == [True, False, False]
    assert removed.criteria[0].value == pytest.approx(1.0095)


@pytest.mark.parametrize(
    ("criteria", "texts"),
    [
        (Criteria(avg_response_ms=2000), ("2.0004 s", "at most 2.0000 s")),
        (Criteria(max_response_ms=5000), ("2.00 s", "at most 5.00 s")),
        (Criteria(quality={"clarity": 0.7}), ("0.6999", "at least 0.7000")),
        (Criteria(quality={"clarity": 0.6999}), ("0.700", "at least 0.700")),
        (Criteria(all_successful=True), ("100.0 %", "all")),
        (Criteria(tool_calls=("proper_timing",)), ("–", "all")),
        (Criteria(quality={"nothing": 0.5}), ("–", "at least 0.500")),
    ],
)
def test_a_value_that_misses_its_limit_never_looks_like_it(criteria: Criteria, texts: tuple[str, str]) -> None:
    found = _check([answer(0.6999, 2000.4, metric_scores={"clarity": 0.6999})], criteria)
    assert [criterion_texts(check.criterion) for check in found.values()] == [texts]
