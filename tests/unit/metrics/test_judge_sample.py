"""Which answers the judges of a suite score, if its limits leave some out."""

from __future__ import annotations

import hashlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.metrics.judge_quota import JudgeSample, draw, trace_identity
from agenteval.suite.evaluation import JudgeLimits

SUITE = "configs/evaluation.yaml"
SEEDS = st.none() | st.integers(0, 2**64)


def judged(calls: list[int], limits: JudgeLimits, seed: int | None = None) -> set[int]:
    """The numbers of the answers that are judged."""
    sample = JudgeSample(seed)
    for number, needed in enumerate(calls):
        sample.add(SUITE, limits, str(number), needed)
    return {number for number in range(len(calls)) if sample.left_out(SUITE, limits, str(number)) is None}


def limits(calls: int | None, rate: float = 1.0) -> JudgeLimits:
    return JudgeLimits(sample_rate=rate, max_calls=calls)


@given(st.lists(st.integers(1, 4), max_size=60), st.integers(0, 80), st.floats(0, 1), SEEDS)
def test_the_answers_with_the_lowest_draws_are_judged_as_far_as_the_calls_last(
    calls: list[int], most: int, rate: float, seed: int | None
) -> None:
    wanted: set[int] = set()
    for number in sorted(range(len(calls)), key=lambda number: draw(str(number), seed)):
        if draw(str(number), seed) >= rate or sum(calls[item] for item in (*wanted, number)) > most:
            break
        wanted.add(number)
    assert judged(calls, limits(most, rate), seed) == wanted


@pytest.mark.parametrize(
    ("given_limits", "cause", "limit", "message"),
    [
        (limits(1), "limit", "limit of 1 call", "limits.max_llm_calls (1) is used up"),
        (limits(50), None, None, None),
        (limits(None), None, None, None),
        (limits(None, 0.0), "sample", "sample of 0 %", "not in the sample of 0 % (limits.sample_rate)"),
    ],
)
def test_the_reason_names_the_limit(
    given_limits: JudgeLimits, cause: str | None, limit: str | None, message: str | None
) -> None:
    sample = JudgeSample()
    for number in range(9):
        sample.add(SUITE, given_limits, str(number), 1)
    reasons = [sample.left_out(SUITE, given_limits, str(number)) for number in range(9)]
    found = {(None, None, None) if item is None else (item.cause, item.limit, str(item)) for item in reasons}
    assert (cause, limit, message) in found


def test_traces_are_drawn_by_their_id_as_in_fluxloop() -> None:
    for name in ("t-1", "8c4803ff-559d-4333-8efb-b0bce8d8e550", ""):
        identity = trace_identity({"trace_id": name, "iteration": 0, "persona": "novice", "input": "Question 0"})
        assert identity == (name or "0:novice:Question 0")
        assert draw(identity) == random.Random(int(hashlib.sha256(identity.encode()).hexdigest(), 16)).random()
