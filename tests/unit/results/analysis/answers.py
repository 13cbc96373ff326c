"""Answers with known numbers, and strategies that generate answers."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from agenteval.results.analysis.answers import EvaluatedAnswer
from agenteval.results.analysis.summary import summarise
from agenteval.results.rollup import final_score, passes
from agenteval.suite.evaluation import Aggregate

AGGREGATE = Aggregate("weighted_sum", 0.7, {"not_empty": 0.2, "keywords": 0.3, "clarity": 0.5})
PERSONAS = ("novice", "expert", None)

scores = st.floats(0, 1)
durations = st.floats(0, 1e6)


def answer(
    score: float | None = None,
    duration_ms: float | None = None,
    *,
    name: str = "a",
    order: int = 0,
    persona: str | None = None,
    success: bool = True,
    metric_scores: Mapping[str, float] | None = None,
    absent: Mapping[str, str] | None = None,
    reasons: Mapping[str, str] | None = None,
    tool_checks: Mapping[str, tuple[float, ...]] | None = None,
    tokens: int | None = None,
    threshold: float = 0.7,
) -> EvaluatedAnswer:
    """One answer that passes if its final score reaches the threshold."""
    return EvaluatedAnswer(
        case_id=f"suite::{name}",
        name=name,
        trace_id=f"trace-{name}",
        order=order,
        persona=persona,
        success=success,
        duration_ms=duration_ms,
        tokens=tokens,
        scores=metric_scores or {},
        absent=absent or {},
        final_score=score,
        passed=passes(score, threshold),
        reasons=reasons or {},
        tool_checks=tool_checks or {},
    )


def many(count: int = 240, seed: int = 7) -> list[EvaluatedAnswer]:
    """Answers as a run has them: three personas, ten iterations, failures, absent scores, slow ones."""
    source = random.Random(seed)
    return [_random_answer(source, number) for number in range(count)]


def _random_answer(source: random.Random, number: int) -> EvaluatedAnswer:
    persona = PERSONAS[number % 3]
    found = {
        "not_empty": float(source.random() > 0.05),
        "keywords": source.choice([0.0, 0.5, 1.0, 1.0]),
        "clarity": round(source.betavariate(6, 2 if persona != "novice" else 5), 2),
    }
    absent = {}
    if source.random() < 0.2:
        del found["clarity"]
        absent["clarity"] = source.choice(["sampled out", "over the budget"])
    reasons = {name: f"{name} is not good enough" for name, score in found.items() if score < 0.6}
    return answer(
        final_score(found, AGGREGATE),
        source.lognormvariate(7, 0.4) * (12 if source.random() < 0.03 else 1),
        name=f"answer {number}",
        order=number % 10,
        persona=persona,
        success=source.random() > 0.04,
        metric_scores=found,
        absent=absent,
        reasons=reasons,
        tool_checks={"all_calls_successful": (1.0, float(source.random() > 0.1))},
        tokens=source.randrange(100, 3000),
    )


def summary_of(answers: Sequence[EvaluatedAnswer], aggregate: Aggregate = AGGREGATE) -> dict[str, Any]:
    """The summary without any outliers removed."""
    return summarise(answers, answers, answers, aggregate)
