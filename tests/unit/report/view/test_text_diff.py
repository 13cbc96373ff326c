from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.core.escape import visible
from agenteval.report.diff import Pieces, difference

_ALL = 10**9
_WORDS = st.lists(
    st.sampled_from(["refund", "37.50", "EUR", "don't", "\n", "€", "שלום", "日本", "`", "<b>", "🎉", "\u202e", " "])
).map(" ".join)


def _marked(pieces: Pieces, mark: str) -> str:
    return "".join(f"{mark}{text}{mark}" if is_changed else text for text, is_changed in pieces)


def _both(before: str, after: str, limit: int = _ALL) -> tuple[str, str]:
    found = difference(before, after, limit)
    assert found is not None
    return _marked(found[0], "-"), _marked(found[1], "+")


@pytest.mark.parametrize(
    ("before", "after", "left", "right"),
    [
        (
            "You get 37.50 EUR back.",
            "You get 42.49 EUR back.",
            "You get -37.50 -EUR back.",
            "You get +42.49 +EUR back.",
        ),
        ("It is open.", "It is not open.", "It is open.", "It is +not +open."),
        ("Yes, it is.", "Yes, it was.", "Yes, it -is-.", "Yes, it +was+."),
        ("hello one, two world", "hello six, ten world", "hello -one, two -world", "hello +six, ten +world"),
        ("営業は九時です", "営業は十時です", "営業は-九-時です", "営業は+十+時です"),
        ("don't stop here", "don't go here", "don't -stop -here", "don't +go +here"),
    ],
)
def test_words_that_differ_are_marked(before: str, after: str, left: str, right: str) -> None:
    assert _both(before, after) == (left, right)


def test_answers_with_little_in_common_are_not_compared() -> None:
    assert difference("The label for order 1009 was sent.", "I cannot help with that.", _ALL) is None
    assert difference("", "", _ALL) is None


@given(_WORDS, _WORDS)
def test_nothing_is_lost(before: str, after: str) -> None:
    found = difference(before, after, _ALL)
    if found is not None:
        left, right = ("".join(piece[0] for piece in side) for side in found)
        assert (left, right) == (visible(before), visible(after))


@given(_WORDS, _WORDS)
def test_unmarked_words_are_equal_except_for_white_space(before: str, after: str) -> None:
    found = difference(before, after, _ALL)
    if found is not None:
        left, right = ("".join(piece[0] for piece in side if not piece[1]).split() for side in found)
        assert "".join(left) == "".join(right)


@given(_WORDS)
def test_the_same_answer_has_no_change(text: str) -> None:
    found = difference(text, text, _ALL)
    assert found is None or not any(piece[1] for side in found for piece in side)


def test_of_long_answers_the_neighbourhood_of_changes_is_shown() -> None:
    filler = "lorem ipsum dolor sit amet " * 40
    left, right = _both(f"{filler}old {filler}", f"{filler}new {filler}", 300)
    assert left.startswith("… ")
    assert left.endswith("… ")
    assert "-old -" in left
    assert "+new +" in right
    assert len(left) < 200


def test_an_answer_is_cut_where_its_room_ends() -> None:
    before = " ".join(f"word{number}" for number in range(200))
    after = before.replace("7", "8")
    found = difference(before, after, 100)
    assert found is not None
    for side in found:
        assert sum(len(piece[0]) for piece in side[:-1]) <= 100
        assert side[-1][0].startswith("… (")
        assert not side[-1][1]
