"""Matching the text of an answer, and patterns with a time limit."""

from __future__ import annotations

import re
import warnings
from typing import Any, cast

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from agenteval.metrics import text as patterns
from agenteval.metrics.base import MetricError, Observation, shown
from agenteval.metrics.text import TextMatchMetric, found, full_match, mismatch
from agenteval.suite.forms import TextMatch


def matches(strategy: str, expected: str | list[str], text: str, *, case_sensitive: bool = False) -> bool:
    texts = (expected,) if isinstance(expected, str) else tuple(expected)
    match = TextMatch(cast(Any, strategy), texts, case_sensitive)
    outcome = TextMatchMetric(match).measure(Observation("q", text))
    if match.matches_everything:
        assert (outcome.score, outcome.passed) == (1.0, None)
    else:
        assert outcome.passed is (outcome.score == 1.0) is (outcome.reason is None)
    return outcome.score == 1.0


@pytest.mark.parametrize(
    ("strategy", "expected", "everything"),
    [
        ("contains", ("",), True),
        ("contains", (" \n",), True),
        ("contains", ("", "a"), False),
        ("contains_any", ("", "a"), True),
        ("startswith", ("a", ""), True),
        ("endswith", ("a",), False),
        ("match", ("",), True),
        ("match", (".*",), True),
        ("match", ("(?s).*$",), True),
        ("match", ("^",), True),
        ("match", (".+",), False),
        ("match", ("^$",), False),
        ("match", ("[a-z]*x",), False),
        ("exact", ("",), False),
        ("similar", ("",), False),
    ],
)
def test_a_check_that_every_text_passes_gives_no_verdict(
    strategy: str, expected: tuple[str, ...], everything: bool
) -> None:
    match = TextMatch(cast(Any, strategy), expected)
    assert match.matches_everything is everything
    if everything:
        outcome = TextMatchMetric(match).measure(Observation("q", "anything"))
        assert (outcome.passed, outcome.reason) == (None, "every text matches, so nothing is checked")


@pytest.mark.parametrize(
    ("strategy", "expected", "text"),
    [
        ("exact", " 4 ", "4"),
        ("exact", "STRASSE", "straße"),
        ("exact", "", " \n"),
        ("exact", "a  b", "A  B"),
        ("contains", ["a", "a"], "a"),
        ("contains", " Paris ", "Paris"),
        ("match", r"\d+", "there are 12 of them"),
        ("match", "(?i)paris", "PARIS"),
        ("match", "(?m)^b$", "a\nb"),
        ("match", "(?s)a.b", "a\nb"),
        ("match", "x{e}", "x{e}"),
    ],
)
def test_texts_that_match(strategy: str, expected: str | list[str], text: str) -> None:
    assert matches(strategy, expected, text)


@pytest.mark.parametrize(
    ("strategy", "expected", "text"),
    [
        ("match", "paris", "PARIS"),
        ("match", "^b$", "a\nb"),
        ("match", "x{e}", "y"),
    ],
)
def test_texts_that_do_not_match(strategy: str, expected: str | list[str], text: str) -> None:
    assert not matches(strategy, expected, text)


@pytest.mark.parametrize(
    ("strategy", "expected", "text", "said"),
    [
        ("exact", ("4",), "5", "expected '4', got '5'"),
        ("contains", ("a", "b", "c"), "xbx", "'a', 'c' is missing in 'xbx'"),
        ("contains_any", ("a", "b"), "x", "'x' contains none of 'a', 'b'"),
        ("startswith", ("a", "b"), "x", "'x' does not start with 'a', 'b'"),
        ("endswith", ("a",), "x", "'x' does not end with 'a'"),
        ("match", (r"\d",), "x", r"the pattern '\\d' is not found in 'x'"),
    ],
)
def test_the_reason_names_both_sides(strategy: str, expected: tuple[str, ...], text: str, said: str) -> None:
    assert mismatch(TextMatch(cast(Any, strategy), expected), text) == said


SPACES = st.text(" \t\n\u00a0", max_size=3)
WORDS = st.text("aAbB .ßéÉ", max_size=6)


@given(WORDS, WORDS, WORDS, SPACES, SPACES)
def test_a_text_contains_starts_and_ends_with_its_parts(a: str, b: str, c: str, left: str, right: str) -> None:
    text = left + a + b + c + right
    assert matches("contains", b, text)
    assert matches("contains", [c, a, b], text)
    assert matches("startswith", ["\x00", a], text)
    assert matches("endswith", ["\x00", c], text)
    assert matches("exact", (a + b + c).swapcase().swapcase(), text) or "ß" in text
    assert matches("contains", b, text, case_sensitive=True)


# Patterns


PIECES = st.sampled_from(
    [
        *"ab{}ei01,[]()|*+?.^$-",
        "\\d",
        "\\w",
        "\\s",
        "\\b",
        "\\{",
        "\\\\",
        "(?:",
        "(?i)",
        "[^",
        "{1,2}",
        "{e}",
        "{i,d}",
    ]
)


@given(st.lists(PIECES, max_size=8).map("".join), st.text("ab{}ei01,d \\", max_size=8))
@example("a{e}", "zzz")
@example("{e<=1}", "q")
@example("a{i,d}", "xa")
@example("[{e}]", "{")
@example("\\\\{e}", "\\{e}")
@example("(?x) a {e} # c", "a{e}")
@example("a{,2}b", "b")
@example("a{}", "a{}")
@example("\\N{EM DASH}{2}", "——")
def test_patterns_match_as_in_the_standard_library(pattern: str, text: str) -> None:
    try:
        with warnings.catch_warnings():
            # Patterns whose meaning will change in a later version of Python.
            warnings.simplefilter("error")
            compiled = re.compile(pattern)
    except (re.error, FutureWarning, OverflowError):
        assume(False)
    assert found(pattern, text) is (compiled.search(text) is not None)
    assert full_match(pattern, text) is (compiled.fullmatch(text) is not None)


def test_a_pattern_that_takes_for_ever_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "LIMIT_S", 0.05)
    for search in (found, full_match):
        with pytest.raises(MetricError, match="takes too long"):
            search(r"(a|a|aa)+$", "a" * 60 + "b")


# Values


@given(st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=30))
def test_values_are_shown_in_at_most_82_characters(value: Any) -> None:
    assert len(shown(value)) <= 82
