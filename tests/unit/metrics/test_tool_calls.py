"""Expected tool calls: by position, by name, and a separate call for each expected one."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agenteval.metrics.base import Observation, Outcome, literal_equal
from agenteval.metrics.tool_calls import ToolCalls
from agenteval.results.case import ToolCall

Expected = tuple[str, list[Any] | dict[str, Any]]


def measure(expected: list[Expected], *calls: ToolCall) -> Outcome:
    metric = ToolCalls([{"name": name, "args": args} for name, args in expected])
    outcome = metric.measure(Observation("q", "r", tool_calls=calls))
    assert outcome.score == float(bool(outcome.passed))
    assert (outcome.reason is None) is outcome.passed
    return outcome


def call(name: str, args: Any = None) -> ToolCall:
    return ToolCall(name=name, args={} if args is None else args)


@pytest.mark.parametrize(
    ("args", "given_args", "passed"),
    [
        ({"x": 1}, {"x": 1, "y": 2}, True),
        ({"x": 1}, {"x": True}, False),
        ({"x": 1}, {"X": 1}, False),
        ({"x": "Paris"}, {"x": "paris"}, False),
        ({"x": {"a": 1}}, {"x": {"a": 1, "b": 2}}, False),
        ({"x": 1}, [1], False),
        ([], {"x": 1}, False),
        ([1, "a"], {"y": "a", "x": 1}, False),
        ([1], {"x": 1, "y": 2}, False),
        ([[1, 2]], {"x": [1, 2]}, True),
        ([True], {"x": 1}, False),
    ],
)
def test_arguments(args: list[Any] | dict[str, Any], given_args: Any, passed: bool) -> None:
    assert measure([("t", args)], call("t", given_args)).passed is passed


def test_a_call_may_come_without_arguments_or_with_a_single_one() -> None:
    assert measure([("t", [])], ToolCall(name="t", args=None)).passed is True
    assert measure([("t", {})], ToolCall(name="t", args=None)).passed is True
    assert measure([("t", [1])], ToolCall(name="t", args=None)).passed is False
    assert measure([("t", ["Rome"])], ToolCall(name="t", args="Rome")).passed is True
    assert measure([("t", [1, 2])], ToolCall(name="t", args=[1, 2])).passed is True


def test_a_vague_expectation_leaves_the_call_that_another_one_needs() -> None:
    vague_first: list[Expected] = [("t", {}), ("t", {"x": 1}), ("t", {"x": 1, "y": 2})]
    calls = [call("t", {"x": 1, "y": 2}), call("t", {"x": 1}), call("t", {"z": 0})]
    for order in permutations(calls):
        assert measure(vague_first, *order).passed is True
    assert measure(vague_first, *calls[:2]).passed is False


VALUES = st.sampled_from([1, 2, True, "a"])
NAMED = st.dictionaries(st.sampled_from("xyz"), VALUES, max_size=3)
EXPECTED = st.tuples(st.sampled_from("tu"), NAMED | st.lists(VALUES, max_size=2))
CALLS = st.builds(call, st.sampled_from("tu"), NAMED)


def fits(expected: Expected, made: ToolCall) -> bool:
    name, args = expected
    if name != made.name:
        return False
    if isinstance(args, list):
        return literal_equal(args, list(made.args.values()))
    return all(key in made.args and literal_equal(value, made.args[key]) for key, value in args.items())


@given(st.lists(EXPECTED, max_size=4), st.lists(CALLS, max_size=5))
@example([("t", {}), ("t", {"x": 1})], [call("t", {"x": 1}), call("t")])
def test_the_assignment_is_as_good_as_the_best_of_all(expected: list[Expected], calls: list[ToolCall]) -> None:
    possible = any(
        all(fits(entry, made) for entry, made in zip(expected, chosen, strict=True))
        for chosen in permutations(calls, len(expected))
    )
    assert measure(expected, *calls).passed is possible
