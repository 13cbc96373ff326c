"""``expected_tools``: names, counts and argument matchers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.metrics.base import Observation, Outcome, literal_equal
from agenteval.metrics.tool_calls import ExpectedTools, fuzzy_equal, matches
from agenteval.results.case import ToolCall

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8
)
FUZZY_TEXTS = st.text(st.sampled_from("aA1 5.,_%-$\t\u202f\u00a0ß")) | st.text()


def call(name: str, **args: Any) -> ToolCall:
    return ToolCall(name=name, args=args)


def measure(expected: list[dict[str, Any]], *calls: ToolCall) -> Outcome:
    return ExpectedTools(expected).measure(Observation(input="q", response="r", tool_calls=calls))


class TestNamesAndCounts:
    def test_only_calls_with_the_arguments_count(self) -> None:
        expected = [{"name": "t", "count": 2, "args": {"x": 1}}]
        assert measure(expected, call("t", x=1), call("t", x=2)).passed is False
        assert measure(expected, call("t", x=1), call("t", x=2), call("t", x=1)).passed is True


class TestArguments:
    @pytest.mark.parametrize(
        ("args", "calls", "passed"),
        [
            (None, [call("t", x=1)], True),
            ({}, [call("t", x=1)], True),
            ({"x": 1}, [call("t", x=1, y=2)], True),
            ({"x": 1, "y": 2}, [call("t", x=1), call("t", y=2)], False),
            ({"x": 1, "y": 2}, [call("t", x=1), call("t", x=1, y=2)], True),
            ({"x": 1}, [call("t")], False),
            ({"x": None}, [call("t")], False),
            ({"x": None}, [call("t", x=None)], True),
            ({"x": 1}, [ToolCall(name="t", args=None)], False),
            ({"x": 1}, [ToolCall(name="t", args="x=1")], False),
            ({}, [ToolCall(name="t", args="x=1")], True),
        ],
    )
    def test_all_must_hold_on_one_call(
        self, args: dict[str, Any] | None, calls: list[ToolCall], passed: bool
    ) -> None:
        assert measure([{"name": "t", "args": args}], *calls).passed is passed

    @pytest.mark.parametrize(
        ("expected", "calls", "reason"),
        [
            ({"name": "t"}, [], "t was not called; called: no tool"),
            ({"name": "t"}, [call("a"), call("b")], "t was not called; called: a, b"),
            ({"name": "t", "count": 2}, [call("t")], "t was called once, expected at least 2; called: t"),
            ({"name": "t", "count": 3}, [call("t")] * 2, "t was called 2 times, expected at least 3; called: t, t"),
            (
                {"name": "t", "args": {"x": 1}},
                [call("t", y=1)],
                "t was not called as expected: argument x is missing; called: t",
            ),
            (
                {"name": "t", "args": {"x": {"fuzzy": "1"}}},
                [call("t", x="2")],
                "t was not called as expected: argument x is '2', expected {'fuzzy': '1'}; called: t",
            ),
        ],
    )
    def test_reasons(self, expected: dict[str, Any], calls: list[ToolCall], reason: str) -> None:
        assert measure([expected], *calls).reason == reason

    def test_long_arguments_are_cut(self) -> None:
        reason = measure([{"name": "t", "args": {"x": 1}}], call("t", x="y" * 10_000)).reason
        assert reason is not None
        assert len(reason) < 250


class TestLiteral:
    @pytest.mark.parametrize(
        ("expected", "actual", "equal"),
        [
            (1, 1.0, True),
            (2**53, float(2**53), True),
            (2**53 + 1, float(2**53), True),
            (2**53 + 1, 2**53, False),
            (10**400, 1.0, False),
            (float("nan"), float("nan"), False),
            (True, False, False),
            (True, 1, False),
            (True, "true", False),
            (None, "", False),
            ("None", None, False),
            ("a", "A", False),
            (1, "1", False),
            ([1], [1, 2], False),
            ([], [], True),
            ({"a": {"b": [1]}}, {"a": {"b": [1.0]}}, True),
        ],
    )
    def test_rules(self, expected: object, actual: object, equal: bool) -> None:
        assert literal_equal(expected, actual) is equal
        assert literal_equal(actual, expected) is equal

    @given(value=VALUES, other=VALUES)
    def test_laws(self, value: object, other: object) -> None:
        assert literal_equal(value, value)
        assert literal_equal(value, other) == literal_equal(other, value)
        assert literal_equal([value], [other]) == literal_equal({"a": value}, {"a": other})
        assert literal_equal([value], [other]) == literal_equal(value, other)


class TestFuzzy:
    @pytest.mark.parametrize(
        ("pattern", "actual", "equal"),
        [
            ("60.940", "60.94", True),
            ("1,204", 1204, True),
            ("1_204", "1 204", True),
            ("1\u202f204", "1204", True),
            ("35 %", "0.35", True),
            ("35", "35%", False),
            ("inf", "Infinity", True),
            ("nan", "NaN", True),
            ("60.94", "60.94001", False),
            ("$60.94", "60.94", False),
            ("New  York", " new york", True),
            ("New York", "newyork", False),
            ("STRASSE", "straße", False),
            ("it's", "its", False),
            ("none", None, True),
            ("", 0, False),
        ],
    )
    def test_rules(self, pattern: str, actual: object, equal: bool) -> None:
        assert fuzzy_equal(pattern, actual) is equal

    @given(left=FUZZY_TEXTS, right=FUZZY_TEXTS)
    def test_laws(self, left: str, right: str) -> None:
        assert fuzzy_equal(left, left)
        assert fuzzy_equal(left, f" {left}\n")
        assert fuzzy_equal(left, right) == fuzzy_equal(right, left)

    @given(number=st.floats(-1e15, 1e15), text=FUZZY_TEXTS)
    def test_numbers_are_compared_by_value(self, number: float, text: str) -> None:
        assert fuzzy_equal(repr(number), number)
        assert fuzzy_equal(f"{number!r}%", f" {number!r} %")
        assert not fuzzy_equal(f"{text}x", number)


class TestMatchers:
    @pytest.mark.parametrize(
        ("matcher", "actual", "matched"),
        [
            ({"fuzzy": "BOLT"}, "bolt", True),
            ("BOLT", "bolt", False),
            ({"regex": "b.lt"}, "bolt", True),
            ({"regex": "b.l"}, "bolt", False),
            ({"regex": "olt"}, "bolt", False),
            ({"regex": "B.LT"}, "bolt", False),
            ({"regex": "(?i)B.LT"}, "bolt", True),
            ({"regex": r"\d+"}, 42, True),
            ({"regex": "True"}, True, True),
            ({"regex": "None"}, None, True),
            ({"regex": r"\[1, 2\]"}, [1, 2], True),
            ({"regex": ""}, "", True),
            ({"other": "x"}, {"other": "x"}, True),
            ({}, {}, True),
            ([{"fuzzy": "A"}], ["a"], False),
        ],
    )
    def test_forms(self, matcher: object, actual: object, matched: bool) -> None:
        assert matches(matcher, actual) is matched
