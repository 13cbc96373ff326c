"""The limits of a run, and the remaining limits after a part of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.run.plan import RunLimits

AMOUNTS = st.floats(0, 50)
LIMITS = st.builds(RunLimits, concurrency=st.integers(1, 8), run_s=st.none() | AMOUNTS)


@given(LIMITS, AMOUNTS)
def test_time_lowers_the_limit_of_the_run_alone(limits: RunLimits, seconds: float) -> None:
    left = limits.minus(seconds)
    assert left.concurrency == limits.concurrency
    assert left.run_s == (None if limits.run_s is None else limits.run_s - seconds)


@given(LIMITS)
def test_no_time_changes_nothing(limits: RunLimits) -> None:
    assert limits.minus(0.0) == limits


@pytest.mark.parametrize(("limit", "seconds", "is_up"), [(10.0, 9.0, False), (10.0, 10.0, True), (None, 1e9, False)])
def test_when_the_time_limit_reached(limit: float | None, seconds: float, is_up: bool) -> None:
    assert RunLimits(1, run_s=limit).minus(seconds).time_limit_reached == is_up
