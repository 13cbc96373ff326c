from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from tests.unit.results.analysis.answers import AGGREGATE, answer, many, summary_of

from agenteval.results.analysis.summary import by_persona, persona_of
from agenteval.suite.evaluation import Aggregate

ANSWERS = many()


def test_totals_are_counted() -> None:
    totals = summary_of(ANSWERS)
    finals = [item.final_score for item in ANSWERS if item.final_score is not None]
    assert totals["total_traces"] == len(ANSWERS) == 240
    assert totals["passed_traces"] == sum(score >= 0.7 - 1e-9 for score in finals)
    assert totals["successful_traces"] == sum(item.success for item in ANSWERS)
    assert totals["pass_rate"] == totals["passed_traces"] / len(finals)
    assert totals["error_rate"] == pytest.approx(1 - np.mean([item.success for item in ANSWERS]))
    assert totals["average_score"] == pytest.approx(np.mean(finals))
    assert totals["score_stats"]["deviation"] == pytest.approx(np.std(finals, ddof=1))


def test_times_and_tokens_are_numpys() -> None:
    summary = summary_of(ANSWERS)
    stats = summary["duration_stats"]
    times = [item.duration_ms for item in ANSWERS]
    assert stats["average"] == pytest.approx(np.mean(np.array(times, dtype=float)))
    for part in (50, 90, 95, 99):
        assert stats[f"p{part}"] == pytest.approx(np.percentile(np.array(times, dtype=float), part))
    assert stats["max"] == max(item.duration_ms or 0 for item in ANSWERS)
    assert summary["token_stats"]["average"] == pytest.approx(np.mean([item.tokens or 0 for item in ANSWERS]))


def test_metrics_leave_out_absent_scores_and_count_them() -> None:
    metrics = summary_of(ANSWERS)["evaluator_stats"]
    assert list(metrics) == ["not_empty", "keywords", "clarity"]
    for name, stats in metrics.items():
        found = [item.scores[name] for item in ANSWERS if name in item.scores]
        assert stats["count"] == len(found)
        assert stats["average"] == pytest.approx(np.mean(found))
        assert (stats["min"], stats["max"]) == (min(found), max(found))
        assert stats["reached"] == sum(score >= 0.7 for score in found)
        assert stats["absent"] == sum(name in item.absent for item in ANSWERS)
    assert metrics["clarity"]["absent"] > 20


def test_personas_are_the_totals_of_their_answers() -> None:
    personas = by_persona(ANSWERS, ANSWERS, ANSWERS, AGGREGATE)
    assert list(personas) == ["default", "expert", "novice"]
    for name, stats in personas.items():
        own = [item for item in ANSWERS if persona_of(item) == name]
        assert stats["total_traces"] == len(own) == 80
        assert stats["pass_rate"] == np.mean([bool(item.passed) for item in own])
        assert stats["average_score"] == pytest.approx(np.mean([item.final_score or 0 for item in own]))
        assert stats["duration_stats"]["average"] == pytest.approx(np.mean([item.duration_ms or 0 for item in own]))
        clarity = [item.scores["clarity"] for item in own if "clarity" in item.scores]
        assert stats["evaluator_stats"]["clarity"]["average"] == pytest.approx(np.mean(clarity))


def test_reasons_are_counted_and_ties_are_by_name() -> None:
    summary = summary_of(ANSWERS)
    counted = Counter(reason for item in ANSWERS for reason in item.reasons.values())
    assert dict(summary["top_reasons"]) == dict(counted)
    assert [count for _, count in summary["top_reasons"]] == sorted(counted.values(), reverse=True)
    absent = Counter(why for item in ANSWERS for why in item.absent.values())
    assert dict(summary["absent_reasons"]) == dict(absent)
    tied = [answer(0.1, name=str(number), reasons={"m": f"reason {number}"}) for number in range(30)]
    assert [reason for reason, _ in summary_of(tied)["top_reasons"]] == sorted(f"reason {n}" for n in range(30))[:10]


@pytest.mark.parametrize(
    ("score", "verdict", "weight", "is_lost"),
    [
        # The aggregate decides, with a threshold of 0.7.
        (0.9, None, 1.0, False),
        (0.7, None, 1.0, False),
        (0.7 - 1e-12, None, 1.0, False),
        (0.69, None, 1.0, True),
        (0.0, None, 1.0, True),
        (0.0, None, 0.0, False),
        # The metric decides.
        (0.9, False, 1.0, True),
        (0.2, True, 1.0, False),
        (0.2, False, 0.0, True),
    ],
)
def test_reasons_are_those_of_lost_points(score: float, verdict: bool | None, weight: float, is_lost: bool) -> None:
    found = answer(score, metric_scores={"m": score}, reasons={"m": "why"})
    found = replace(found, verdicts={} if verdict is None else {"m": verdict})
    aggregate = Aggregate("weighted_sum", 0.7, {"m": weight})
    counted = [["why", 1]] if is_lost else []
    assert found.lost(aggregate) == dict.fromkeys(["m"] if is_lost else [], "why")
    assert summary_of([found], aggregate)["top_reasons"] == counted
    assert by_persona([found], [found], [found], aggregate)["default"]["top_reasons"] == counted
