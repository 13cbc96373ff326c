"""Patterns that every text passes are known as such, and no other ones."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.core.text import matches_everything

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
