"""The status of answers whose scores are aggregated, with and without the judges that limits left out."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.runs import broken, not_asked, score, turn

from agenteval.results.case import CaseStatus, Score
from agenteval.run.scoring import aggregated
from agenteval.suite.evaluation import Aggregate, AggregateMethod

SHARES = st.sampled_from([0.0, 0.25, 0.5, 0.7, 1.0])
WEIGHTS = st.sampled_from([0.0, 0.2, 0.5, 1.0, 3.0])


def rule(value: float) -> Score:
    return score("rule", value, None)


@pytest.mark.parametrize(
    ("turns", "threshold", "status"),
    [
        ([[rule(0.0), not_asked("judge")]], 0.7, "failed"),
        ([[rule(0.0), not_asked("judge", cause="sample")]], 0.7, "failed"),
        ([[rule(0.0), not_asked("judge", cause="budget")]], 0.7, "failed"),
        ([[rule(0.4), not_asked("judge")]], 0.7, "skipped"),
        ([[rule(0.39), not_asked("judge")]], 0.7, "failed"),
        ([[rule(1.0), not_asked("judge")]], 0.5, "skipped"),
        ([[not_asked("judge")]], 0.7, "skipped"),
        ([[rule(0.0), not_asked("judge"), broken("other")]], 0.7, "error"),
        ([[rule(0.0), score("judge", 0.0, None)], [rule(0.0), not_asked("judge")]], 0.3, "failed"),
        ([[rule(0.0), score("judge", 0.0, None)], [rule(0.0), not_asked("judge")]], 0.25, "skipped"),
    ],
)
def test_an_answer_fails_without_its_judge_if_no_score_of_the_judge_could_reach_the_threshold(
    turns: list[list[Score]], threshold: float, status: CaseStatus
) -> None:
    made = [turn(*scores, index=index) for index, scores in enumerate(turns)]
    assert aggregated(made, Aggregate(threshold=threshold), []) == (status, None)


@given(
    st.lists(st.tuples(SHARES, WEIGHTS, st.booleans()), min_size=1, max_size=3),
    st.sampled_from(["weighted_sum", "average"]),
    SHARES,
)
def test_the_answer_fails_exactly_if_it_fails_with_every_score_of_the_judges(
    metrics: list[tuple[float, float, bool]], method: AggregateMethod, threshold: float
) -> None:
    names = [f"m{index}" for index in range(len(metrics))]
    weights = dict(zip(names, (weight for _, weight, _ in metrics), strict=True))
    aggregate = Aggregate(method, threshold, weights)
    given_scores = [
        not_asked(name) if left_out else score(name, value, None)
        for name, (value, _, left_out) in zip(names, metrics, strict=True)
    ]
    answers = [(0.0, 0.5, 1.0) if left_out else (value,) for value, _, left_out in metrics]
    possible = {
        aggregated(
            [turn(*(score(name, value, None) for name, value in zip(names, values, strict=True)))], aggregate, []
        )[0]
        for values in itertools.product(*answers)
    }
    status = aggregated([turn(*given_scores)], aggregate, [])[0]
    is_missing = any(left_out and weight for _, weight, left_out in metrics)
    assert (status == "failed") == (possible == {"failed"})
    assert status != "passed" or not is_missing
