"""Texts in cells of a terminal, and patterns that every text passes."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agenteval.core.text import cut, matches_everything, width, wrapped


def test_width() -> None:
    table = {
        "": 0,
        "plain": 5,
        "日本語": 6,
        "ｶﾅ": 2,
        "cafe\u0301": 4,
        "한글": 4,
        "\u1112\u1161\u11ab": 2,
        "👍🏽": 4,
        "a\u200bb\u2060c": 3,
        "נשלחה": 5,
        "हिन्दी": 5,
    }
    assert {text: width(text) for text in table} == table


def test_lines_break_at_blanks_and_long_words_inside() -> None:
    assert wrapped("one two three", 7) == ["one two", "three"]
    assert wrapped("one two three", 7, first=4) == ["one", "two", "three"]
    assert wrapped("abc", 7, first=1) == ["", "abc"]
    assert wrapped("x abcdefgh y", 3) == ["x", "abc", "def", "gh", "y"]
    assert wrapped("日本語です", 5) == ["日本", "語で", "す"]
    assert wrapped("", 5) == [""]


_TEXTS = st.text(st.sampled_from("ab日\u0301\u200b👍 "), max_size=60)


@given(_TEXTS, st.integers(2, 20))
@example("\u0301", 2)
def test_no_line_is_too_wide_and_nothing_is_lost(text: str, columns: int) -> None:
    lines = wrapped(text, columns)
    assert max(map(width, lines)) <= columns
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert width(cut(text, columns)) <= columns


EVERYTHING = [
    *("", ".*", "a*", ".{0,200}", "(foo)?", "foo|", "(?:a|b*)", "()", "a*?", "(a?)+", "(?i:x*)"),
    *("^", "$", r"\A", r"\Z", "^.*", ".*$", "a*$", "^a?", "(^)", "^|a", "$|a"),
    *("(?m)^", "(?x) .* # all"),
]
SOMETHING = [
    *(".+", "^$", "[a-z]*x", "a", ".", r"\b", r"\s", "[^x]", "a+", "(?=a)"),
    *("^(?!.*sorry)", "^(?!.*sorry).*$", "(?!sorry)", r"(?<!a)b*", "^(?:(?!sorry).)*$"),
    *(
        "^[^<]*$",
        "^.{0,200}$",
        "^.*$",
        "(?m)^.*$x",
        "^a*$",
        r"^\w*$",
        "(?s)^.{0,9}$",
        "(?s)$.*^",
        "a*^b*$",
        "(?s)^.+$",
    ),
    # Not certain: these begin and end at the ends of a text.
    *("(?s)^.*$", r"^[\s\S]*$", "(?s)^(a|.*)$"),
    *(r"^[\s\d]*$", r"^[^\s\S]*$", "(?s:^)(?-s:.*)$", "(?s)^(?-s:.*)$"),
]
TEXTS = ["", "\n", "a", "7 \u2603", "sorry", "<b>", "two\nlines", "x" * 300, " \n\n", "a\r\nb", "_", "sorryx"]


@pytest.mark.parametrize("pattern", EVERYTHING)
def test_what_is_found_in_every_text(pattern: str) -> None:
    assert matches_everything(pattern)
    assert all(re.search(pattern, text) for text in TEXTS)


@pytest.mark.parametrize("pattern", SOMETHING)
def test_what_is_not(pattern: str) -> None:
    assert not matches_everything(pattern)


PARTS = st.sampled_from(
    [
        "a",
        "b?",
        "a*",
        ".*",
        "^",
        "$",
        "(?:a|b)",
        "(?:|b)",
        "(a*)",
        "(?!b)",
        "(?=a)",
        r"\b",
        r"[\s\S]*",
        "[^b]*",
        ".{0,2}",
        "|",
    ]
)


@given(
    st.lists(PARTS, max_size=5).map("".join),
    st.sampled_from([0, re.DOTALL, re.MULTILINE]),
    st.text("ab\n ", max_size=6),
)
def test_it_is_never_said_of_a_pattern_that_a_text_fails(pattern: str, flags: int, text: str) -> None:
    if matches_everything(pattern, flags):
        assert re.search(pattern, text, flags)
