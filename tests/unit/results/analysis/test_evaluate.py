from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.unit.results.analysis.answers import AGGREGATE, many

from agenteval.results.analysis.evaluate import evaluate
from agenteval.suite.evaluation import AlertRule, Analyses, Criteria, Evaluation, EvaluationReport

ANSWERS = many()
EVALUATION = Evaluation(
    goal="Serve everybody.",
    criteria=Criteria(
        all_successful=True,
        avg_response_ms=2000,
        max_response_ms=5000,
        error_rate_percent=5,
        quality={"clarity": None},
        tool_calls=("all_calls_successful",),
    ),
    analyses=Analyses(
        focus_personas=("expert", "nobody"),
        outliers=True,
        trend=True,
        failures=True,
        failure_causes=True,
        statistics=True,
        alerts=(AlertRule("error_rate", ">", 1), AlertRule("avg_score", "<", 0.1)),
    ),
    report=EvaluationReport(),
)
# What readers of FluxLoop's summary.json may rely on.
FLUXLOOP_KEYS = {
    "total_traces",
    "passed_traces",
    "pass_rate",
    "average_score",
    "threshold",
    "aggregate_method",
    "evaluators",
    "evaluator_stats",
    "persona_breakdown",
    "top_reasons",
    "evaluation_goal",
    "success_criteria_results",
    "overall_success",
    "analysis",
    "report",
}


def test_the_summary_has_fluxloops_form_and_direct_numbers() -> None:
    content = evaluate(ANSWERS, EVALUATION, AGGREGATE).content
    finals = [item.final_score or 0 for item in ANSWERS]
    assert content.keys() >= FLUXLOOP_KEYS
    assert content["total_traces"] == 240
    assert content["passed_traces"] == sum(bool(item.passed) for item in ANSWERS)
    assert content["pass_rate"] == pytest.approx(content["passed_traces"] / 240)
    assert content["average_score"] == pytest.approx(np.mean(finals))
    assert (content["threshold"], content["aggregate_method"]) == (0.7, "weighted_sum")
    assert content["evaluators"] == ["not_empty", "keywords", "clarity"]
    clarity = [item.scores["clarity"] for item in ANSWERS if "clarity" in item.scores]
    stats = content["evaluator_stats"]["clarity"]
    assert stats["average"] == pytest.approx(np.mean(clarity))
    assert (stats["min"], stats["max"], stats["count"]) == (min(clarity), max(clarity), len(clarity))
    expert = [item for item in ANSWERS if item.persona == "expert"]
    assert content["persona_breakdown"]["expert"]["count"] == len(expert)
    assert content["persona_breakdown"]["expert"]["pass_rate"] == np.mean([bool(item.passed) for item in expert])
    assert content["report"] == {"format": "both", "style": "standard", "tone": "balanced", "template": "default"}
    assert json.loads(json.dumps(content, allow_nan=False)) == json.loads(json.dumps(content))


def test_analyses_are_there_when_asked_for() -> None:
    analysis = evaluate(ANSWERS, EVALUATION, AGGREGATE).content["analysis"]
    assert set(analysis) == {"persona", "performance", "failures", "statistics", "alerts", "recommendations"}
    assert list(analysis["persona"]["breakdown"]) == ["expert"]
    assert set(analysis["performance"]["outliers"]) == {"duration_ms", "final_score"}
    assert len(analysis["performance"]["trends"]["final_score"]["points"]) == 10
    assert analysis["failures"]["count"] == sum(item.passed is False for item in ANSWERS)
    assert [alert["triggered"] for alert in analysis["alerts"]] == [True, False]
    assert len(analysis["statistics"]["tests"]) == 6


def test_removing_outliers_changes_averages_as_a_direct_computation_does() -> None:
    analyses = replace(EVALUATION.analyses, outlier_handling="remove")
    result = evaluate(ANSWERS, replace(EVALUATION, analyses=analyses), AGGREGATE)
    outliers = result.analysis["performance"]["outliers"]
    slow = {item["name"] for item in outliers["duration_ms"]}
    odd = {item["name"] for item in outliers["final_score"]}
    assert slow
    assert odd
    content = result.content
    kept = [item.duration_ms or 0 for item in ANSWERS if item.name not in slow]
    assert content["duration_stats"]["average"] == pytest.approx(np.mean(kept))
    scores = [item.final_score or 0 for item in ANSWERS if item.name not in odd]
    assert content["average_score"] == pytest.approx(np.mean(scores))
    clarity = [item.scores["clarity"] for item in ANSWERS if item.name not in odd and "clarity" in item.scores]
    assert content["evaluator_stats"]["clarity"]["average"] == pytest.approx(np.mean(clarity))
    everything = evaluate(ANSWERS, EVALUATION, AGGREGATE).content
    for key in ("total_traces", "passed_traces", "pass_rate"):
        assert content[key] == everything[key]
