from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.results.analysis.answers import AGGREGATE, answer

from agenteval.results.analysis.answers import EvaluatedAnswer
from agenteval.results.analysis.evaluate import evaluate
from agenteval.results.verdict import percent, seconds
from agenteval.suite.evaluation import Analyses, Criteria, Evaluation

ALL = Analyses(outliers=True, trend=True, failures=True, failure_causes=True)


def _bad_run() -> list[EvaluatedAnswer]:
    answers = []
    for number in range(60):
        score = 0.7 - number // 6 * 0.05
        answers.append(
            answer(
                score,
                1000.0 + number if number else 60_000.0,
                name=f"answer {number}",
                order=number // 6,
                persona="novice" if number % 2 else "expert",
                metric_scores={"clarity": score},
                reasons={"clarity": "wrong tool {braces} %s"},
                absent={"keywords": "sampled out"} if number % 3 else {},
            )
        )
    return answers


def test_everything_that_is_wrong_is_named_the_most_pressing_first(tmp_path: Path) -> None:
    baseline = tmp_path / "summary.json"
    before = [answer(0.9, name=str(number), metric_scores={"clarity": 0.9}) for number in range(60)]
    baseline.write_text(json.dumps(evaluate(before, Evaluation(), AGGREGATE).content), encoding="utf-8")
    evaluation = Evaluation(
        criteria=Criteria(max_response_ms=5000),
        analyses=Analyses(outliers=True, trend=True, failures=True, failure_causes=True, baseline=str(baseline)),
    )
    items = evaluate(_bad_run(), evaluation, AGGREGATE).analysis["recommendations"]
    found = {item["action"]: item for item in items}
    assert {step: (item["priority"], item["summary"]) for step, item in found.items()} == {
        "Meet the condition on max response time": ("high", "60.00 s, wanted: at most 5.00 s"),
        "Raise the pass rate": (
            "high", "10.0 %, wanted: at least 70.0 %; most frequent reason: wrong tool {braces} %s",
        ),
        "Win back what was lost against the baseline": ("high", "10.0 %, 100.0 % in the baseline"),
        "Win back clarity": ("high", "0.475, 0.900 in the baseline"),
        "Serve expert better": ("medium", "10.0 % of the answers pass, wanted: at least 70.0 %"),
        "Serve novice better": ("medium", "10.0 % of the answers pass, wanted: at least 70.0 %"),
        "Improve clarity": ("medium", "mean 0.47, wanted: at least 0.70"),
        "Fix failures by tool calls": (
            "medium", "54 of 54 failed answers, for example answer 10, answer 11, answer 12",
        ),
    }  # fmt: skip
    assert [item["priority"] for item in items] == ["high"] * 4 + ["medium"] * 4
    assert found["Raise the pass rate"]["metrics"] == {"pass_rate": 0.1, "threshold": 0.7}
    assert found["Win back clarity"]["metrics"]["delta"] == pytest.approx(0.475 - 0.9)
    assert found["Fix failures by tool calls"]["metrics"]["count"] == 54


def _recommended(answers: list[EvaluatedAnswer]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = evaluate(answers, Evaluation(analyses=ALL), AGGREGATE).analysis.get(
        "recommendations", []
    )
    return found


def test_at_most_the_five_worst_personas_are_named() -> None:
    found = _recommended([answer(0.1, name=str(number), persona=f"p{number}") for number in range(30)])
    assert [item["title"] for item in found if item["title"].startswith("Persona")] == [
        f"Persona {name}" for name in ("p0", "p1", "p10", "p11", "p12")
    ]


@pytest.mark.parametrize(
    ("share", "text"), [(1.0, "100.0 %"), (0.9999, ">99.9 %"), (0.9, "90.0 %"), (0.0001, "<0.1 %"), (0.0, "0.0 %")]
)
def test_only_all_is_all(share: float, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(
    ("time", "text"), [(840.4, "840 ms"), (1840, "1.84 s"), (999.9, "1.00 s"), (2e6, "2,000.00 s")]
)
def test_times(time: float, text: str) -> None:
    assert seconds(time) == text
