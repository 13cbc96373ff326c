from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.results.analysis.answers import answer, many, summary_of

from agenteval.results.analysis.criteria import alert_text, check_alerts
from agenteval.suite.evaluation import AlertRule, alert_problem, known_alert_metrics

ANSWERS = many()
SUMMARY = summary_of(ANSWERS)


def _value(metric: str) -> float | None:
    value: float | None = check_alerts([AlertRule(metric, ">", 0)], SUMMARY)[0]["value"]
    return value


def test_every_known_metric_is_computed_directly() -> None:
    times = np.array([item.duration_ms or 0 for item in ANSWERS])
    finals = np.array([item.final_score or 0 for item in ANSWERS])
    passed = sum(bool(item.passed) for item in ANSWERS)
    means = {
        name: np.mean([item.scores[name] for item in ANSWERS if name in item.scores])
        for name in ("not_empty", "keywords", "clarity")
    }
    expected = {
        "error_rate": 100 * np.mean([not item.success for item in ANSWERS]),
        "pass_rate": passed / 240,
        "avg_score": finals.mean(),
        "average_score": finals.mean(),
        "min_score": min(means.values()),
        "total_traces": 240,
        "passed_traces": passed,
        "failed_traces": 240 - passed,
        "absent_scores": sum(len(item.absent) for item in ANSWERS),
        "avg_response_time": times.mean(),
        "max_response_time": times.max(),
        **{f"p{share}_response_time": np.percentile(times, share) for share in (50, 90, 95, 99)},
        "avg_tokens": np.mean([item.tokens or 0 for item in ANSWERS]),
        **means,
    }
    assert tuple(expected) == known_alert_metrics(means)
    for name, value in expected.items():
        assert _value(name) == pytest.approx(value)


@given(st.floats(0, 1), st.floats(0, 1))
def test_exactly_one_of_less_equal_and_more_holds(value: float, limit: float) -> None:
    summary = summary_of([answer(value)])
    rules = [AlertRule("avg_score", operator, limit) for operator in ("<", "==", ">")]
    assert sum(alert["triggered"] for alert in check_alerts(rules, summary)) == 1


def test_without_data_an_alert_is_not_triggered() -> None:
    (alert,) = check_alerts([AlertRule("avg_response_time", ">", 5)], summary_of([answer(0.9)]))
    assert (alert["value"], alert["triggered"], alert_text(alert)) == (None, False, "avg_response_time > 5: no data")


def test_an_unknown_metric_names_the_nearest_ones() -> None:
    problem = alert_problem(AlertRule("eror_rate", ">", 5), ["clarity"])
    assert problem == "unknown alert metric 'eror_rate'; did you mean 'error_rate'?"
    nearest = alert_problem(AlertRule("zzz", ">", 5), ["clarity"])
    assert nearest == "unknown alert metric 'zzz'; nearest: total_traces, passed_traces, pass_rate"
    own = alert_problem(AlertRule("clarty", ">", 5), ["clarity"])
    assert own == "unknown alert metric 'clarty'; did you mean 'clarity'?"
    assert alert_problem(AlertRule("clarity", "<", 0.5), ["clarity"]) is None


@pytest.mark.parametrize(
    ("metric", "threshold", "fine"),
    [
        ("error_rate", 5, True),
        ("error_rate", 101, False),
        ("pass_rate", 0.9, True),
        ("pass_rate", 90, False),
        ("avg_score", -0.1, False),
        ("clarity", 7, False),
        ("p95_response_time", 2500, True),
        ("pass_rate", math.nan, False),
    ],
)
def test_thresholds_that_no_value_reaches_are_problems(metric: str, threshold: float, fine: bool) -> None:
    assert (alert_problem(AlertRule(metric, ">", threshold), ["clarity"]) is None) == fine
