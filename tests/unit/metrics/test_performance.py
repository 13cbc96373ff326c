"""Limits on latency and tokens, checked on the mean over all iterations."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.metrics.base import MetricError, Observation, Outcome
from agenteval.metrics.performance import Latency, Tokens
from agenteval.results.case import Usage


def took(*seconds: float | None) -> list[Observation]:
    return [Observation("q", "r", latency_ms=None if value is None else value * 1000) for value in seconds]


def used(*counts: tuple[int | None, int | None] | None) -> list[Observation]:
    return [
        Observation("q", "r", usage=None if pair is None else Usage(input_tokens=pair[0], output_tokens=pair[1]))
        for pair in counts
    ]


def only(outcomes: list[Outcome], number: int) -> Outcome:
    """The outcome that all iterations share."""
    assert len(outcomes) == number
    assert all(outcome == outcomes[0] for outcome in outcomes)
    assert outcomes[0].decided
    assert outcomes[0].score == float(bool(outcomes[0].passed))
    return outcomes[0]


def latency(observations: list[Observation], **limits: float) -> Outcome:
    return only(Latency(**limits).measure_all(observations), len(observations))


def tokens(observations: list[Observation], **limits: int) -> Outcome:
    return only(Tokens(**limits).measure_all(observations), len(observations))


@pytest.mark.parametrize(
    ("metric", "observations", "said"),
    [
        (Latency(maximum=1), took(None, 0.5), "1 of 2 answers without a latency"),
        (Tokens(maximum=1), used(None, None), "2 of 2 answers without input tokens: the reply of the agent needs"),
        (Tokens(maximum=100), used(None, (50, 50)), "1 of 2 answers without input tokens"),
        (Tokens(maximum=100), used((3, None)), "1 of 1 answer without output tokens"),
        (Tokens(input_max=1), used((None, 5)), "without input tokens"),
    ],
)
def test_a_missing_measurement_is_an_error(metric: Any, observations: list[Observation], said: str) -> None:
    with pytest.raises(MetricError, match=said):
        metric.measure_all(observations)


def test_what_numbers_of_computers_lack_decides_nothing() -> None:
    assert latency(took(0.1 + 0.2), maximum=0.3).passed is True


def test_the_reason_says_what_was_wrong_and_how_the_values_lie() -> None:
    assert latency(took(0.5), maximum=1).reason == "mean 0.5 s"
    assert latency(took(0.5, 1.0), maximum=1).reason == "mean 0.75 s, p95 1 s"
    assert latency(took(2.5), maximum=1).reason == "expected at most 1 s, got 2.5; mean 2.5 s"
    assert tokens(used((5, 6)), equal=10, output_max=5).reason == (
        "expected 10 tokens, got 11; expected at most 5 output tokens, got 6; mean 11 tokens"
    )


SECONDS = st.lists(st.integers(0, 100_000).map(lambda millis: millis / 1000), min_size=1, max_size=60)
COUNTS = st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 5000)), min_size=1, max_size=60)


def direct_p95(values: list[float]) -> float:
    """Return the least value that at least 19 of 20 values do not exceed."""
    return min(value for value in values if sum(other <= value for other in values) * 20 >= 19 * len(values))


@given(SECONDS)
def test_latency_details_are_those_of_a_direct_computation(seconds: list[float]) -> None:
    details = latency(took(*seconds), maximum=1).details or {}
    assert details["mean"] == pytest.approx(float(sum(map(Fraction, seconds)) / len(seconds)))
    assert details["p95"] == pytest.approx(direct_p95(seconds))
    assert (details["min"], details["max"]) == pytest.approx((min(seconds), max(seconds)))
    assert details["n"] == len(seconds)


@given(COUNTS, st.integers(0, 10_000), st.integers(0, 10_000))
def test_token_verdicts_are_those_of_a_direct_computation(
    counts: list[tuple[int, int]], least: int, most: int
) -> None:
    total = Fraction(sum(map(sum, counts)), len(counts))
    outcome = tokens(used(*counts), minimum=least, maximum=most)
    assert outcome.passed is (least <= total <= most)
    assert outcome.details is not None
    assert outcome.details["p95"] == direct_p95([float(sum(pair)) for pair in counts])
    outputs = Fraction(sum(pair[1] for pair in counts), len(counts))
    assert tokens(used(*counts), output_min=least, output_max=most).passed is (least <= outputs <= most)
