from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.results.analysis.answers import AGGREGATE, many, summary_of

from agenteval.results.analysis.evaluate import compare_with, evaluate, read_baseline
from agenteval.suite.evaluation import Aggregate, Analyses, Evaluation

FLUXLOOP: dict[str, Any] = {
    "total_traces": 6,
    "passed_traces": 3,
    "pass_rate": 0.5,
    "average_score": 0.55,
    "threshold": 0.7,
    "evaluator_stats": {"clarity": {"average": 0.25, "min": 0.2, "max": 0.3, "count": 6}, "gone": {"average": 1.0}},
    "persona_breakdown": {},
}


def _file(path: Path, content: object) -> Path:
    file = path / "summary.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return file


def test_a_summary_of_fluxloop_is_compared(tmp_path: Path) -> None:
    summary = summary_of(many())
    found = compare_with(read_baseline(_file(tmp_path, FLUXLOOP)), summary)
    assert "message" not in found
    assert found["pass_rate"]["delta"] == pytest.approx(summary["pass_rate"] - 0.5)
    assert found["average_score"]["delta"] == pytest.approx(summary["average_score"] - 0.55)
    assert [found[name]["baseline"] for name in ("total_traces", "passed_traces")] == [6, 3]
    assert list(found["evaluator_averages"]) == ["clarity"]
    clarity = summary["evaluator_stats"]["clarity"]["average"]
    assert found["evaluator_averages"]["clarity"]["delta"] == pytest.approx(clarity - 0.25)


def test_a_summary_of_agenteval_is_read_back_with_its_spread(tmp_path: Path) -> None:
    result = evaluate(many(), Evaluation(), AGGREGATE)
    found = read_baseline(_file(tmp_path, result.content))
    assert isinstance(found, dict)
    assert found["score_stats"] == result.content["score_stats"]
    stats = result.content["evaluator_stats"]["clarity"]
    assert found["evaluator_stats"]["clarity"] == {name: stats[name] for name in ("average", "deviation", "count")}
    same = compare_with(found, result.content)
    del same["baseline_path"]
    deltas = (*same.pop("evaluator_averages").values(), *same.values())
    assert {delta["delta"] for delta in deltas} == {0.0}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ("[1]", "is not a summary"),
        ("{}", "is not a summary"),
        ('{"pass_rate": "high", "average_score": true}', "is not a summary"),
        ('{"pass_rate": NaN}', "is not a summary"),
        ('{"evaluator_stats": {"a": 1, "b": {"average": null}}}', "is not a summary"),
    ],
)
def test_a_broken_baseline_is_a_message(tmp_path: Path, content: str, message: str) -> None:
    found = read_baseline(_file(tmp_path, content))
    assert isinstance(found, str)
    assert message in found


def test_a_missing_baseline_is_a_message(tmp_path: Path) -> None:
    missing = tmp_path / "none.json"
    evaluation = Evaluation(analyses=Analyses(baseline=str(missing)))
    result = evaluate(many(), evaluation, AGGREGATE)
    (message,) = result.warnings
    assert "there is no baseline at" in message
    assert result.analysis["comparison"] == {"message": message}
    assert "cannot be read" in str(read_baseline(tmp_path))


def test_another_threshold_is_reported(tmp_path: Path) -> None:
    baseline = read_baseline(_file(tmp_path, FLUXLOOP))
    found = compare_with(baseline, summary_of(many(), Aggregate(threshold=0.8)))
    assert found["message"] == "the threshold was 0.7 in the baseline and is 0.8 now: pass rates differ by that"
