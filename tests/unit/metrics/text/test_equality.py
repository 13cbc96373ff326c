"""``equality`` and ``numeric``: every rule, and general laws."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.metrics.base import Observation, Outcome
from agenteval.metrics.text import Equality, Numeric

FLAGS = st.fixed_dictionaries(
    {name: st.booleans() for name in ("case_insensitive", "strip_whitespace", "strip_punctuation")}
)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


def measure(metric: Equality | Numeric, response: str, ground_truth: str | None) -> Outcome:
    return metric.measure(Observation(input="q", response=response, ground_truth=ground_truth))


class TestEquality:
    @pytest.mark.parametrize(
        ("flags", "response", "ground_truth", "equal"),
        [
            ("", "", "", True),
            ("", "", "yes", False),
            ("", "None", "", False),
            ("case", "ﬁn", "fin", True),
            ("case", "Σ", "ς", True),
            ("case", "I", "ı", False),
            ("space", "a\u00a0b\u2003c", "a b c", True),
            ("space", " ", "", True),
            ("punctuation", "It's (fine)!", "Its fine", True),
            ("punctuation", "1,000.5", "10005", True),
            ("punctuation", "a - b", "a b", False),
            ("punctuation", "«a»", "a", False),
            ("punctuation", "€5", "5", False),
            ("punctuation", "$5", "5", True),
            ("space punctuation", "a - b", "a b", True),
        ],
    )
    def test_rules(self, flags: str, response: str, ground_truth: str, equal: bool) -> None:
        metric = Equality(
            case_insensitive="case" in flags,
            strip_whitespace="space" in flags,
            strip_punctuation="punctuation" in flags,
        )
        for left, right in ((response, ground_truth), (ground_truth, response)):
            outcome = measure(metric, left, right)
            assert (outcome.score, outcome.passed) == (float(equal), equal)
            assert (outcome.reason is None) is equal

    def test_the_reason_shows_both_sides(self) -> None:
        reason = measure(Equality(case_insensitive=True), "NO " * 100, "Yes").reason
        assert reason is not None
        assert reason.startswith("expected 'yes', got 'no no ")
        assert len(reason) < 150

    @given(flags=FLAGS, left=st.text("aA .,ßſ\t"), right=st.text("aA .,ßſ\t"))
    def test_it_is_symmetric_and_every_flag_only_forgives(
        self, flags: dict[str, bool], left: str, right: str
    ) -> None:
        metric = Equality(**flags)
        assert measure(metric, left, right).score == measure(metric, right, left).score
        if left == right:
            assert measure(metric, left, right).score == 1.0


class TestNumericParsing:
    @pytest.mark.parametrize(
        ("text", "number"),
        [
            ("60.940", 60.94),
            (" 5\n", 5.0),
            ("\u00a05\u00a0", 5.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("1E-2", 0.01),
            ("010", 10.0),
            ("٣", 3.0),
            ("inf", math.inf),
            ("-Infinity", -math.inf),
        ],
    )
    def test_numbers(self, text: str, number: float) -> None:
        assert Numeric().parse(text) == number

    @pytest.mark.parametrize(
        "text",
        [
            "$60.94",
            "5kg",
            "(5)",
            "−5",
            "0x1F",
            "1 000",
            "5 5",
            "True",
        ],
    )
    @pytest.mark.parametrize("lenient", [False, True])
    def test_texts_that_are_never_numbers(self, text: str, lenient: bool) -> None:
        metric = Numeric(accept_percent=lenient, accept_thousands_separators=lenient)
        with pytest.raises(ValueError, match="is not a number"):
            metric.parse(text)

    @pytest.mark.parametrize(
        ("text", "number"),
        [("35%", 0.35), ("35 %", 0.35), ("35% ", 0.35), ("-5%", -0.05), ("0.5%", 0.005), ("35", 35.0)],
    )
    def test_percent(self, text: str, number: float) -> None:
        assert Numeric(accept_percent=True).parse(text) == pytest.approx(number)

    @pytest.mark.parametrize(
        ("text", "number"),
        [
            ("1,000", 1000.0),
            ("1_000", 1000.0),
            ("1\u00a0000", 1000.0),
            ("1\u202f000", 1000.0),
            ("1,2,3,4", 1234.0),
            ("3,14", 314.0),
            ("1.234,56", 1.23456),
            ("-1,000.5", -1000.5),
            ("1,000%", 10.0),
        ],
    )
    def test_thousands_separators(self, text: str, number: float) -> None:
        metric = Numeric(accept_thousands_separators=True, accept_percent=True)
        assert metric.parse(text) == pytest.approx(number)

    @given(number=st.integers(-(10**15), 10**15))
    def test_so_is_one_with_separators(self, number: int) -> None:
        metric = Numeric(accept_thousands_separators=True)
        for text in (f"{number:,}", f"{number:_}", f"{number:,}".replace(",", "\u202f")):
            assert metric.parse(text) == number


class TestNumericComparison:
    @pytest.mark.parametrize(
        ("options", "response", "ground_truth", "equal"),
        [
            ({"absolute_tolerance": 0}, "0.3", "0.30000000000000004", False),
            ({"absolute_tolerance": 0, "relative_tolerance": 0.01}, "100", "101.1", False),
            ({"absolute_tolerance": 0, "relative_tolerance": 1}, "0.1", "0", False),
            ({"absolute_tolerance": 2, "relative_tolerance": 0.01}, "7", "5", True),
            ({"accept_percent": True}, "35", "35%", False),
            ({}, "nan", "nan", False),
            ({"relative_tolerance": 0.01}, "5", "nan", False),
        ],
    )
    def test_rules(self, options: dict[str, Any], response: str, ground_truth: str, equal: bool) -> None:
        outcome = measure(Numeric(**options), response, ground_truth)
        assert (outcome.score, outcome.passed) == (float(equal), equal)
        assert (outcome.reason is None) is equal

    @pytest.mark.parametrize(
        ("response", "ground_truth", "reason"),
        [
            ("", "5", "the response is empty, not a number"),
            ("5", "five", "the ground truth 'five' is not a number"),
            ("7", "5", "expected 5.0, got 7.0: a difference of 2"),
        ],
    )
    def test_reasons(self, response: str, ground_truth: str, reason: str) -> None:
        outcome = measure(Numeric(), response, ground_truth)
        assert (outcome.score, outcome.passed, outcome.reason) == (0.0, False, reason)

    @given(left=NUMBERS, right=NUMBERS, tolerance=st.floats(0, 1e6), more=st.floats(0, 1e6))
    def test_tolerance_is_symmetric_and_only_forgives(
        self, left: float, right: float, tolerance: float, more: float
    ) -> None:
        strict, loose = Numeric(absolute_tolerance=tolerance), Numeric(absolute_tolerance=tolerance + more)
        score = measure(strict, repr(left), repr(right)).score
        assert measure(strict, repr(right), repr(left)).score == score
        assert measure(loose, repr(left), repr(right)).score >= score
