"""Texts of pictures are laid out within their width, and none is lost."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripts.pictures.ink import Span, lines_of
from scripts.pictures.markdown import comment_picture
from scripts.pictures.terminal import terminal_picture

_WIDEST_CHARACTER = 30.0
_spans = st.lists(
    st.builds(
        Span,
        st.text("abc mMi.,→é漢 \n", max_size=40),
        bold=st.booleans(),
        mono=st.booleans(),
    ),
    max_size=5,
)


@given(_spans, st.floats(_WIDEST_CHARACTER, 300))
def test_lines_have_all_words_in_order_and_fit(spans: list[Span], width: float) -> None:
    lines = lines_of(spans, width)
    for line in lines:
        assert sum(span.width for span in line) <= width + 0.001
    given_text = "".join(span.text for span in spans)
    laid_out = "".join(span.text for line in lines for span in line)
    assert re.sub(r"\s", "", laid_out) == re.sub(r"\s", "", given_text)


def _words(svg: str) -> str:
    return " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg))


@pytest.mark.parametrize(
    ("markdown", "shown", "hidden"),
    [
        ("### ❌ Two **cases**", "Two cases", ""),
        ("a <b>b</b> <code>c_d</code> <sub>e</sub><br>f", "a b c_d e f", "<"),
        ("&lt;b&gt; &amp; &#95;", "&lt;b&gt; &amp; _", ""),
        ("- one\n- two\n  1. three", "• one • two 1. three", ""),
        ("| a | b |\n|:--|--:|\n| 1 | 2 |", "a b 1 2", "|"),
        ("```diff\n- old\n+ new\n```", "- old + new", "`"),
        ("<details><summary><b>More</b></summary>\n\nsecret\n\n</details>\n\nafter", "More after", "secret"),
        ("<details open><summary>More</summary>\n\ninside\n\n</details>", "More inside", ""),
        (
            "<details><summary>One</summary>\n\ninside\n\n</details>\n"
            "<details><summary>Two</summary>\n\nalso inside\n\n</details>",
            "One Two",
            "inside",
        ),
        ("zero\u200bwidth <!-- note -->", "zerowidth", "-->"),
        ("[link](https://example.org) ~~gone~~", "link gone", "example"),
    ],
)
def test_markdown_is_drawn_as_github_shows_it(markdown: str, shown: str, hidden: str) -> None:
    words = _words(comment_picture(markdown, "light", "a comment"))
    assert re.sub(r"\s+", " ", words.partition("commented")[2]).strip() == shown
    assert not hidden or hidden not in words


def test_only_so_many_folds_with_a_diff_are_open() -> None:
    fold = "<details><summary>{0}</summary>\n\n```diff\n- {0}\n+ new\n```\n\n</details>\n"
    text = fold.format("first") + fold.format("second")
    words = _words(comment_picture(text, "dark", "a comment", opened=1))
    assert "- first" in words
    assert "- second" not in words


def test_a_terminal_keeps_columns_and_colours() -> None:
    printed = "\x1b[31mfailed\x1b[0m  case\n\x1b[2mdim\x1b[0m   漢 x"
    picture = terminal_picture(printed, "light", "a terminal", command="agenteval run", columns=40)
    places = re.findall(r'<text x="([\d.]+)"[^>]*>([^<]*)</text>', picture)
    expected = {"$": 18, "agenteval run": 32.4, "failed": 18, "case": 75.6, "dim": 18, "漢 x": 61.2}
    assert {text: float(x) for x, text in places} == pytest.approx(expected, abs=0.1)
    assert 'fill="#d1242f"' in picture
