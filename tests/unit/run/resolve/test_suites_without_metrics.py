"""Suites that cannot score recorded traces, and the reason."""

from __future__ import annotations

import pytest

from agenteval.run.resolve.suites import without_metrics
from agenteval.suite.evaluation import Aggregate
from agenteval.suite.model import MetricConfig, Suite


@pytest.mark.parametrize(
    ("metrics", "aggregate", "reason"),
    [
        ((), Aggregate(), "every evaluator is disabled; enable at least one"),
        ((), None, "its metrics belong to single cases"),
        ((MetricConfig("a", "rules", "rule"),), Aggregate(), None),
    ],
)
def test_a_suite_that_cannot_score_traces_names_the_reason(
    metrics: tuple[MetricConfig, ...], aggregate: Aggregate | None, reason: str | None
) -> None:
    suite = Suite(path="s.yaml", name="s", format="any", cases=(), metrics=metrics, aggregate=aggregate)
    expected = [] if reason is None else [f"recorded traces cannot be scored with this suite: {reason}"]
    assert [problem.message for problem in without_metrics([suite])] == expected
