from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from agenteval.core.text import cut, width, wrapped


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
