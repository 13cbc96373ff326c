"""The limits of a run, and what a part of the run leaves of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agenteval.core.llm.budget import Limits
from agenteval.results.model import RunUsage
from agenteval.run.plan import RunLimits

COUNTS = st.integers(0, 50)
AMOUNTS = st.floats(0, 50)
LIMITS = st.builds(
    RunLimits,
    concurrency=st.integers(1, 8),
    case_s=st.none() | AMOUNTS,
    run_s=st.none() | AMOUNTS,
    models=st.builds(Limits, max_calls=st.none() | COUNTS, max_cost_usd=st.none() | AMOUNTS),
)


def usage(calls: int, cost_usd: float) -> RunUsage:
    return RunUsage(llm_calls=calls, cost_usd=cost_usd)


@given(LIMITS, COUNTS, AMOUNTS, AMOUNTS)
def test_use_lowers_limits_and_sets_none(limits: RunLimits, calls: int, cost_usd: float, seconds: float) -> None:
    left = limits.minus(usage(calls, cost_usd), seconds)
    assert (left.concurrency, left.case_s) == (limits.concurrency, limits.case_s)
    for before, after, used in (
        (limits.models.max_calls, left.models.max_calls, calls),
        (limits.models.max_cost_usd, left.models.max_cost_usd, cost_usd),
    ):
        assert after == (None if before is None else max(0, before - used))
    assert left.run_s == (None if limits.run_s is None else limits.run_s - seconds)


@given(LIMITS)
def test_no_use_changes_nothing(limits: RunLimits) -> None:
    assert limits.minus(usage(0, 0.0), 0.0) == limits


@given(LIMITS, COUNTS, COUNTS, COUNTS, COUNTS)
def test_use_adds_up(limits: RunLimits, first: int, second: int, seconds: int, more: int) -> None:
    one_by_one = limits.minus(usage(first, 0.0), seconds).minus(usage(second, 0.0), more)
    at_once = limits.minus(usage(first + second, 0.0), seconds + more)
    assert one_by_one.models == at_once.models
    assert (one_by_one.run_s is None) == (at_once.run_s is None)


def test_what_is_used_up() -> None:
    limits = RunLimits(1, run_s=10.0, models=Limits(max_calls=3, max_cost_usd=1.0))
    assert not limits.models_are_used_up
    assert not limits.time_is_up
    assert limits.minus(usage(3, 0.5), 1.0).models_are_used_up
    assert limits.minus(usage(2, 1.5), 1.0).models_are_used_up
    assert not limits.minus(usage(2, 0.5), 9.0).models_are_used_up
    assert limits.minus(usage(0, 0.0), 10.0).time_is_up
    without = RunLimits(1).minus(usage(1000, 1000.0), 1000.0)
    assert not without.models_are_used_up
    assert not without.time_is_up
