from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from tests.unit.results.analysis.answers import AGGREGATE, answer, many, summary_of

from agenteval.results.analysis.summary import by_persona
from agenteval.suite.evaluation import Aggregate

ANSWERS = many()


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


def test_a_persona_has_its_scores_and_its_times() -> None:
    everyone = [answer(0.25, 10.0, name="a"), answer(0.75, 90.0, name="b")]
    found = by_persona(everyone, everyone[:1], everyone[1:], AGGREGATE)["default"]
    assert (found["average_score"], found["duration_stats"]["average"]) == (0.25, 90.0)
