from __future__ import annotations

import json
import string
from pathlib import Path

import pytest
from tests.unit.results.analysis.answers import AGGREGATE, answer, many

from agenteval.results.analysis.answers import EvaluatedAnswer
from agenteval.results.analysis.evaluate import as_json, evaluate
from agenteval.results.analysis.formatting import percent, seconds
from agenteval.results.analysis.recommendations import ADVICE, TITLES, Recommendation
from agenteval.suite.evaluation import Analyses, Criteria, Evaluation, EvaluationReport, Tone

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
                absent={"keywords": "sampled out"} if number % 3 else {},
                reasons={"clarity": "wrong tool {braces} %s"},
            )
        )
    return answers


def _recommend(tone: Tone, tmp_path: Path) -> dict[str, Recommendation]:
    baseline = tmp_path / "summary.json"
    before = [answer(0.9, name=str(number), metric_scores={"clarity": 0.9}) for number in range(60)]
    baseline.write_text(json.dumps(as_json(evaluate(before, Evaluation(), AGGREGATE))), encoding="utf-8")
    evaluation = Evaluation(
        criteria=Criteria(max_response_ms=5000),
        analyses=Analyses(outliers=True, trend=True, failures=True, failure_causes=True, baseline=str(baseline)),
        report=EvaluationReport(tone=tone),
    )
    return {item.title: item for item in evaluate(_bad_run(), evaluation, AGGREGATE).recommendations}


def test_everything_that_is_wrong_is_named_the_most_pressing_first(tmp_path: Path) -> None:
    found = _recommend("balanced", tmp_path)
    assert list(found) == [
        "Meet the condition on max response time",
        "Raise the pass rate",
        "Win back what was lost against the baseline",
        "Win back clarity",
        "Serve expert better",
        "Serve novice better",
        "Improve clarity",
        "Fix failures by tool calls",
        "Stop the decline of scores",
        "Get the missing scores of keywords",
        "Look at unusually slow answers",
    ]
    assert [item.priority for item in found.values()] == ["high"] * 4 + ["medium"] * 6 + ["low"]
    assert found["Raise the pass rate"].metrics == {"pass_rate": 0.1, "threshold": 0.7}
    assert found["Win back clarity"].metrics["delta"] == pytest.approx(0.475 - 0.9)
    assert found["Fix failures by tool calls"].metrics["count"] == 54
    assert "60.00 s" in found["Look at unusually slow answers"].summary


@pytest.mark.parametrize("tone", ["technical", "executive", "balanced"])
def test_untrusted_text_stays_unchanged(tone: Tone, tmp_path: Path) -> None:
    assert "wrong tool {braces} %s" in _recommend(tone, tmp_path)["Raise the pass rate"].summary


def test_tones_say_the_same_in_other_words(tmp_path: Path) -> None:
    tones: list[Tone] = ["technical", "executive", "balanced"]
    by_tone = [_recommend(tone, tmp_path) for tone in tones]
    for title in by_tone[0]:
        items = [found[title] for found in by_tone]
        assert len({item.summary for item in items}) == 3
        assert len({item.action for item in items}) == 3
        assert items[0].metrics == items[1].metrics == items[2].metrics


def test_a_good_run_needs_nothing() -> None:
    good = [answer(0.9, 1000.0, name=str(number), metric_scores={"clarity": 0.9}) for number in range(20)]
    assert evaluate(good, Evaluation(analyses=ALL), AGGREGATE).recommendations == ()


def test_at_most_the_five_worst_personas_are_named() -> None:
    answers = [answer(0.1, name=str(number), persona=f"p{number}") for number in range(30)]
    found = evaluate(answers, Evaluation(), AGGREGATE).recommendations
    assert [item.title for item in found if item.title.startswith("Serve")] == [
        f"Serve {name} better" for name in ("p0", "p1", "p10", "p11", "p12")
    ]


def test_every_kind_has_texts_in_every_tone() -> None:
    assert ADVICE.keys() == TITLES.keys()
    for texts in ADVICE.values():
        assert set(texts) == {"technical", "executive", "balanced"}
        for advice in texts.values():
            assert all(list(string.Formatter().parse(text)) for text in advice)


@pytest.mark.parametrize(
    ("share", "text"), [(1.0, "100.0%"), (0.9999, ">99.9%"), (0.9, "90.0%"), (0.0001, "<0.1%"), (0.0, "0.0%")]
)
def test_only_all_is_all(share: float, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(
    ("time", "text"), [(840.4, "840 ms"), (1840, "1.84 s"), (999.9, "1.00 s"), (2e6, "2,000.00 s")]
)
def test_times(time: float, text: str) -> None:
    assert seconds(time) == text


def test_many_answers_of_many_kinds_never_fail() -> None:
    for seed in range(20):
        evaluate(many(30, seed), Evaluation(analyses=ALL), AGGREGATE)
