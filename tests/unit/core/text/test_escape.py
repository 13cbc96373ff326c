from __future__ import annotations

import html as html_parser
import re
import sys
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree
from markdown_it import MarkdownIt
from tests.unit.report.samples import HOSTILE_TEXTS

from agenteval.core import escape

# Any character, lone surrogates included, with many characters that are special in some format.
_ODD = "`~@#|<>&*_[]()!:\\$%\x1b\x9b\x00\r\n\t\u202e\u2028\ud800\ufffe\U000e0041-+=.0a "
_CHARACTERS = st.one_of(st.characters(exclude_categories=()), st.sampled_from(_ODD))
_PIECES = st.sampled_from(
    [
        *HOSTILE_TEXTS,
        "```",
        "www.",
        "https://",
        "GH-1",
        "@a",
        "#1",
        "::error::",
        "##[error]",
        "\x1b[31m",
        "]]>",
        "<!--",
    ]
)
TEXTS = st.one_of(st.text(_CHARACTERS), st.lists(st.one_of(_PIECES, st.text(_CHARACTERS, max_size=3))).map("".join))

_GAPS = str.maketrans("", "", "\u200b")
_MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
_OUTLETS: list[Callable[[str], str]] = [
    escape.one_line,
    escape.markdown_inline,
    escape.markdown_lines,
    escape.markdown_block,
    escape.html,
    escape.xml,
    escape.terminal,
    escape.workflow_data,
    escape.workflow_property,
]


@pytest.mark.parametrize("outlet", _OUTLETS)
@given(text=TEXTS)
def test_every_outlet_gives_text_that_encodes(outlet: Callable[[str], str], text: str) -> None:
    outlet(text).encode()


@pytest.mark.parametrize("outlet", [escape.visible, escape.xml])
def test_printable_characters_stay(outlet: Callable[[str], str]) -> None:
    printable = "".join(filter(str.isprintable, map(chr, range(sys.maxunicode + 1))))
    assert outlet(f"{printable}\n") == f"{printable}\n"


class TestOneLine:
    @given(TEXTS)
    def test_is_one_line(self, text: str) -> None:
        assert len(escape.one_line(text).splitlines()) <= 1

    @pytest.mark.parametrize(
        ("text", "limit", "line"),
        [
            (" a\t b\r\nc ", None, "a b c"),
            ("abcdef", 6, "abcdef"),
            ("abcdefg", 6, "abcdef…"),
            ("a\x1b[1mb\x1b[0m\x07c", None, "abc"),
            ("x" * 10_000_000, 3, "xxx…"),
            ("", 3, ""),
        ],
    )
    def test_collapses_and_cuts(self, text: str, limit: int | None, line: str) -> None:
        assert escape.one_line(text, limit) == line

    def test_an_unterminated_sequence_hides_nothing_behind_it(self) -> None:
        assert escape.one_line("\x1b]0;title and the answer") == "0;title and the answer"


class TestMarkdownInline:
    @given(TEXTS)
    def test_is_one_line_without_markup(self, text: str) -> None:
        escaped = escape.markdown_inline(text)
        assert len(escaped.splitlines()) <= 1
        assert "<" not in escaped.replace("<span>$</span>", "")

    @given(TEXTS)
    @example("1. one")
    @example("- one")
    @example("=")
    def test_shows_the_text_and_nothing_else_as_a_paragraph(self, text: str) -> None:
        rendered = _MARKDOWN.render(escape.markdown_inline(text))
        assert _visible(rendered, "p") == _expected(text)

    @given(TEXTS)
    def test_shows_the_text_and_nothing_else_in_a_table(self, text: str) -> None:
        rendered = _MARKDOWN.render(f"| a | b |\n|---|---|\n| {escape.markdown_inline(text)} | end |\n")
        cells = re.findall(r"<td>(.*?)</td>", rendered, re.DOTALL)
        assert len(cells) == 2
        assert _visible(f"<p>{cells[0]}</p>", "p") == _expected(text)

    @pytest.mark.parametrize(
        ("text", "escaped"),
        [
            ("plain text, with 1.5 and a-b (c) 'd'!", "plain text, with 1.5 and a-b (c) 'd'!"),
            ("@team", "@&#8203;team"),
            ("#12", "&#35;&#8203;12"),
            ("GH-12 gh-3 xgh-4", "GH-&#8203;12 gh-&#8203;3 xgh-4"),
            ("https://a.example", "https:&#8203;//a.example"),
            ("WWW.a.example", "WWW&#8203;.a.example"),
            ("1a2b3c4 1234567 defaced 1a2b3c", "1a2b3c&#8203;4 1234567 defaced 1a2b3c"),
            ("0a" * 10, "0a0a0a&#8203;0a0a0a&#8203;0a0a0a&#8203;0a"),
            (":tada: 12:30:45 a:b", ":&#8203;tada: 12:30:45 a:b"),
            ("costs $5", "costs <span>$</span>5"),
            ("1. one", "1&#8203;. one"),
            ("1.00 -0.5", "1.00 -0.5"),
            ("-0.5", "&#45;0.5"),
        ],
    )
    def test_references_that_github_would_link_are_broken(self, text: str, escaped: str) -> None:
        assert escape.markdown_inline(text) == escaped

    def test_cuts_before_it_escapes(self) -> None:
        assert escape.markdown_inline("<" * 1_000_000, 2) == "&#60;&#60;…"


class TestMarkdownLines:
    @given(TEXTS)
    def test_is_one_line_of_source(self, text: str) -> None:
        assert len(escape.markdown_lines(text).splitlines()) <= 1

    def test_keeps_lines_and_indentation(self) -> None:
        assert escape.markdown_lines("{\n  a\tb\n}\n") == "&#123;<br>&nbsp;&nbsp;a b<br>&#125;"

    def test_the_number_of_omitted_characters_is_shown(self) -> None:
        assert escape.markdown_lines("a" * 1500, 10) == "aaaaaaaaaa<br>… (1,490 more characters)"
        assert escape.markdown_lines("abc", 10) == "abc"

    def test_the_first_sixty_lines_are_shown(self) -> None:
        assert escape.markdown_lines("a\n" * 60) == "<br>".join(60 * ["a"])
        assert escape.markdown_lines("a\n" * 62) == "<br>".join([*60 * ["a"], "… (2 more lines)"])

    def test_only_a_beginning_of_four_times_the_limit_and_256_characters_is_read(self) -> None:
        assert escape.markdown_lines("\x07" * 263 + "ab", 2) == "a<br>… (1 more characters)"
        assert escape.markdown_lines("\x07" * 264 + "ab", 2) == "<br>… (2 more characters)"


class TestMarkdownBlock:
    @given(TEXTS)
    def test_content_cannot_close_the_fence(self, text: str) -> None:
        tokens = _MARKDOWN.parse(f"{escape.markdown_block(text)}\n\nafter")
        assert [token.type for token in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]
        assert tokens[0].info == "text"

    @given(st.lists(st.tuples(st.sampled_from([*"`~\n ", "a", "\x00", "\u202e"]), st.integers(1, 2_000))))
    @example([("`", 99)])
    @example([("`", 100)])
    @example([("`", 101)])
    @example([("`", 254), ("\n", 1), ("`", 2_000)])
    @example([("~", 255)])
    @example([("`", 60), ("\x00", 1), ("`", 60)])
    def test_no_run_is_long_and_the_fence_is_longer(self, runs: list[tuple[str, int]]) -> None:
        text = "".join(character * length for character, length in runs)
        block = escape.markdown_block(text)
        opening, *content, closing = block.strip("\n").split("\n")
        longest = {
            character: max(map(len, re.findall(f"{character}+", "\n".join(content))), default=0) for character in "`~"
        }
        assert max(longest.values()) <= escape.LONGEST_RUN
        assert opening == f"{closing}text"
        assert closing == "`" * max(3, longest["`"] + 1)
        assert "\n".join(content).translate(_GAPS) == escape.visible(text)

    def test_the_gap_comes_after_a_hundred_backticks(self) -> None:
        run = "`" * 100
        assert escape.markdown_block(f"{run}`") == f"\n\n{run}`text\n{run}\u200b`\n{run}`\n\n"

    @pytest.mark.parametrize("before", ["", "a", "> ", "- ", "1. ", "    ", "<details>", "| a |\n|---|\n| "])
    def test_is_a_block_wherever_it_stands(self, before: str) -> None:
        text = "# not a heading\n\n@octocat"
        tokens = _MARKDOWN.parse(f"{before}{escape.markdown_block(text)}after")
        assert [token.content for token in tokens if token.type == "fence"] == [f"{text}\n"]
        assert tokens[-2].content == "after"

    def test_forges_no_marker(self) -> None:
        assert "<!--" not in escape.markdown_block("<!-- agenteval:comment id= -->")
        assert "<!--" not in escape.markdown_block("<!\x1b[m-\u202e- agenteval:comment id= -->")

    def test_the_number_of_omitted_characters_is_shown(self) -> None:
        assert escape.markdown_block("ab" * 100, 4) == "\n\n```text\nabab\n… (196 more characters)\n```\n\n"


class TestHtml:
    @given(TEXTS)
    def test_has_no_markup(self, text: str) -> None:
        assert not re.search("[<>\"']", escape.html(text))

    def test_shows_the_text_in_a_quoted_attribute_too(self) -> None:
        assert escape.html("<a b=\"c\" d='e'>&") == "&lt;a b=&quot;c&quot; d=&#x27;e&#x27;&gt;&amp;"

    @pytest.mark.parametrize(
        ("text", "target"),
        [
            ("https://a.example/b?c=1&d=[2]#e", "https://a.example/b?c=1&amp;d=[2]#e"),
            ("http://a.example", "http://a.example"),
            ("javascript:alert(1)", "#"),
            ("data:text/html,a", "#"),
            (" https://a.example", "#"),
            ("https://a.example/ onclick=b", "#"),
            ('https://a.example/"', "#"),
            ("https://", "#"),
            (f"https://{'a' * 4000}", f"https://{'a' * 4000}"),
            (f"https://{'a' * 4001}", "#"),
        ],
    )
    def test_only_a_web_address_becomes_a_target(self, text: str, target: str) -> None:
        assert escape.address(text) == target


class TestJsonInHtml:
    def test_keeps_the_values_without_markup(self) -> None:
        text = '{"a": "</script><!-- & \u00e4"}'
        assert escape.json_in_html(text) == '{"a": "\\u003c/script\\u003e\\u003c!-- \\u0026 \u00e4"}'

    def test_has_no_hidden_and_no_impossible_characters(self) -> None:
        assert escape.json_in_html('"a\u202eb\ud800\ufeff"') == '"ab\ufffd"'


class TestXml:
    @given(TEXTS)
    def test_any_text_becomes_valid_xml(self, text: str) -> None:
        clean = escape.xml(text)
        written = html_parser.escape(clean).replace("\r", "&#13;")
        parsed = etree.fromstring(f'<a b="{written}">{written}</a>'.encode())
        assert (parsed.text or "") == clean

    def test_control_characters_stay_visible(self) -> None:
        assert escape.xml("\x1b[31m\x00\x7f\ud800\ufffe\u202e\x85\tä\n") == "␛[31m␀␡\ufffd\ufffd\x85\tä\n"
        assert escape.xml("\x1f \x80") == "␟ \ufffd"


class TestTerminal:
    @given(TEXTS)
    def test_no_control_character_survives(self, text: str) -> None:
        assert not [character for character in escape.terminal(text) if unicodedata.category(character) == "Cc"]

    @given(TEXTS)
    def test_line_feeds_survive_on_request(self, text: str) -> None:
        lines = escape.terminal(text, multiline=True)
        assert not [character for character in lines.replace("\n", "") if unicodedata.category(character) == "Cc"]

    @given(TEXTS)
    def test_a_runner_finds_no_command(self, text: str) -> None:
        for line in escape.terminal(text, multiline=True).split("\n"):
            assert not line.strip().startswith("::")
            assert "##[" not in line

    @given(TEXTS, st.integers(1, 5))
    def test_a_runner_finds_no_command_in_broken_lines(self, text: str, width: int) -> None:
        shown = escape.terminal(text, wrapped=True)
        lines = [shown[start : start + width] for start in range(len(shown))]
        assert not [line for line in lines if line.strip().startswith("::") or "##[" in line]

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("\x1b[1;31mred\x1b[0m", "red"),
            ("\x9b31mred", "red"),
            ("\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x07", "link"),
            ("\x1bPdevice control\x1b\\text", "text"),
            ("\x1b(Btext\x1bM", "text"),
            ("progress 1\rprogress 2", "progress 1 progress 2"),
            ("abc\u202edef\u2066", "abcdef"),
            ("a\tb", "a b"),
            ("a::b", "a::b"),
            ("::a", ":\u200b:a"),
        ],
    )
    def test_strips_sequences(self, text: str, shown: str) -> None:
        assert escape.terminal(text) == shown


class TestWorkflowCommands:
    @given(TEXTS.filter(lambda text: text.isprintable() or text.isascii()))
    def test_data_is_one_line_that_decodes_to_the_text(self, text: str) -> None:
        data = escape.workflow_data(text)
        assert "\n" not in data
        assert "\r" not in data
        assert data.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%") == text

    def test_property_ends_neither_itself_nor_the_command(self) -> None:
        assert escape.workflow_property("a,b::c%\r\n") == "a%2Cb%3A%3Ac%25%0D%0A"


def _visible(rendered: str, tag: str) -> str:
    """The text of the only element; it contains no other elements than the expected span."""
    inner = rendered.strip().removeprefix(f"<{tag}>").removesuffix(f"</{tag}>")
    text = inner.replace("<span>$</span>", "$")
    assert "<" not in text
    return html_parser.unescape(text).translate(_GAPS).strip()


def _expected(text: str) -> str:
    return escape.one_line(text).translate(_GAPS).strip()
