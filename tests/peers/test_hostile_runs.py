"""Runs of Markdown's special characters in every field of every Markdown text, as GitHub's parser renders them.

Each page is compared with the page of the same fields whose special characters are letters: it must consist of the
same elements, in the same depth, with the same words.
"""

from __future__ import annotations

import json
import re
import shutil
import string
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

import pytest
from pydantic import BaseModel
from tests.peers.github_markdown import assert_only_ours, rendered, texts_outside_code
from tests.unit.report import samples
from tests.unit.report.samples import Sample
from tests.unit.report.scenarios import SCENARIOS
from tests.unit.results.analysis.answers import AGGREGATE, answer

from agenteval.core import escape
from agenteval.core.errors import Problem
from agenteval.github.check_run import abandonment, creation, updates
from agenteval.github.publisher import PublishOptions, content_of
from agenteval.report.analysis import render_markdown
from agenteval.report.markdown import render_comment, render_summary
from agenteval.report.overview import (
    render_nothing_left,
    render_problems,
    render_running,
    render_unfinished,
    running_note,
)
from agenteval.report.overview import report_files as badge_files
from agenteval.report.parts import Site
from agenteval.results.analysis.evaluate import AnalysedSuite, evaluate
from agenteval.suite.evaluation import Analyses, Evaluation, EvaluationReport

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(shutil.which("cmark-gfm") is None, reason="needs cmark-gfm"),
]

_MIXED = (
    *("\n", "\t", " ", " \n", "\n\n", "\n    ", "\n\t", "\r\n", "\x0b", "\u2028", "> ", "> > ", ">\n", "- ", "* * "),
    *("+ ", "1. ", "1) ", "# ", "\n# ", "[](", "![](", "[a](b) ", "[[", "]]", "[^1]", "[ ] ", "**_", "~~*", "***"),
    *(
        "~~",
        "__",
        "<a>",
        "<b><i>",
        "<details>",
        "</details>",
        "</td>",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<?",
        "<!A",
    ),
    *("`\n", "```\n", "~~~\n", "`~", "| ", "|-", "|\n", "a|", "|\n|-", "\\`", "\\\n", "&#", "&lt;", "&#96;", "@a "),
    *(
        "#1 ",
        "GH-1 ",
        "www.a.b ",
        "http://a.b ",
        "a@b.c ",
        "mailto:a@b.c ",
        ":a:",
        "$a$",
        "===\n",
        "---\n",
        "1a2b3c4 ",
    ),
    *("{{", "{%"),
)
_PIECES = (*string.punctuation, *_MIXED)
# One of each around every size at which a parser or our limits change.
_EDGES: tuple[int, ...] = (1, 2, 3, 4, 5, 7, 8, 9, 31, 33, 63, 64, 99, 101, 127, 129, 199, 201, 255, 256, 257)
_EDGES += (301, 401, 512, 601, 999, 1_001, 1_023, 1_025, 1_499, 1_501, 2_000)
_TURNS = 3
_FEW = (1, 2, 3, 4, 7, 100, 101, 255, 256, 2_000)
# What comes to life if a run ends anything.
_LIVE = "\n# zz\n@octocat #1 ![zz](https://evil.example/p.png) [zz](https://evil.example) <b>zz</b>\n- zz\n\n> zz\n"
_WORD = re.compile("q[a-z]+q")
_WITHIN_A_TEXT = {"br", "span", "del", "ins"}
_NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
_URL = "https://github.com/acme/widgets/actions/runs/1"
_COMMIT = "0123456789abcdef0123456789abcdef01234567"
_NO_LIMIT = 10**9
_TEMPLATE = """
### {{ report.heading.text }} {{ report.heading.name|inline(5000) }}

{% for cause in report.causes %}
> {{ cause.words|lines }} {{ cause.words|block }}

{% for found in cause.cases %}
- {{ found.name }} {{ found.name|data }} {{ found.name|block }} {{ found.path|block(5000) }}

| {{ found.name|lines }} | {{ found.answer|lines(5000) }} |
|---|---|
| {{ found.name|inline(5000) }} | {{ found.answer|block }} |

<details><summary>{{ found.name }}</summary>{{ found.answer|block }}</details>

    {{ found.answer|block }}
{% endfor %}
{% endfor %}
{{ report.warnings|join("*") }}
"""

Outlet = Callable[[str], str]


def _text(piece: str, length: int) -> str:
    return piece * (length // len(piece) + 1) + _LIVE


def _harmless(text: str) -> str:
    return re.sub(r"\S", "x", text)


def _by_letters() -> dict[str, list[str]]:
    """Return the pieces by the letters in their place, because the page of the letters is made only once."""
    found: dict[str, list[str]] = {}
    for piece in _PIECES:
        found.setdefault(_harmless(piece), []).append(piece)
    return found


_BY_LETTERS = _by_letters()


# The escape module alone: every length.


def _paragraph(text: str) -> str:
    return f"{escape.markdown_inline(text) or 'empty'}\n\n"


def _row(text: str) -> str:
    return f"| a | b |\n|---|---|\n| {escape.markdown_lines(text)} | {escape.markdown_inline(text)} |\n\n"


def _item(text: str) -> str:
    return f"- {escape.markdown_inline(text) or 'empty'}\n"


def _quote(text: str) -> str:
    return f"> {escape.markdown_inline(text) or 'empty'}\n\n"


@pytest.mark.parametrize("outlet", [_paragraph, _row, _item, _quote])
@pytest.mark.parametrize("lengths", [range(1, 20), (*range(252, 258), 999, 1_000, 2_000)])
def test_a_run_of_any_length_is_the_same_elements_as_letters(outlet: Outlet, lengths: Sequence[int]) -> None:
    for letters, pieces in _BY_LETTERS.items():
        harmless = [_harmless(_text(letters, length)) for length in lengths]
        expected = _skeleton(rendered("".join(map(outlet, harmless)), hardbreaks=False))
        for piece in pieces:
            texts = [_text(piece, length) for length in lengths]
            page = rendered("".join(map(outlet, texts)), hardbreaks=False)
            assert_only_ours(page)
            assert _skeleton(page) == expected, piece


@pytest.mark.parametrize("character", "`~")
def test_a_block_is_one_block_with_the_text(character: str) -> None:
    for lengths in (range(1, 1_001), range(1_001, 2_001)):
        texts = [f"a\n{character * length}{_LIVE}" for length in lengths]
        _assert_blocks(texts)


def test_a_block_of_any_run_is_one_block_with_the_text() -> None:
    for piece in _PIECES:
        _assert_blocks([f"a{_text(piece, length)}b" for length in _EDGES])


def _assert_blocks(texts: Sequence[str]) -> None:
    page = rendered("".join(map(escape.markdown_block, texts)), hardbreaks=False)
    assert [element.tag for element in page.iter()] == ["div", *["pre", "code"] * len(texts)]
    shown = [_without_gaps(code.text_content()) for code in page.iter("code")]
    assert shown == [f"{_without_gaps(escape.visible(text))}\n" for text in texts]


# Whole pages: every field.


class _Fields:
    """Puts a hostile text into each field of a run, another length in each; equal texts stay equal."""

    def __init__(self, change: Callable[[str], str], *pieces: str, shift: int = 0) -> None:
        self._pieces = pieces[shift:] + pieces[:shift]
        self._change = change
        self._texts: dict[str, str] = {}

    def text(self, original: str) -> str:
        if original not in self._texts:
            number = len(self._texts)
            letters = str(number).translate(str.maketrans(string.digits, string.ascii_lowercase[:10]))
            piece = self._pieces[number % len(self._pieces)]
            run = self._change(_text(piece, _FEW[number % len(_FEW)]))
            self._texts[original] = f"q{letters}q {run}"
        return self._texts[original]

    def of(self, value: Any) -> Any:
        match value:
            case str():
                return self.text(value)
            case list() | tuple():
                return type(value)(map(self.of, value))
            case dict():
                return {self.of(key): self.of(item) for key, item in value.items()}
            case BaseModel():
                free = {name for name, field in type(value).model_fields.items() if not _is_literal(field.annotation)}
                return value.model_copy(update={name: self.of(getattr(value, name)) for name in free})
        return value

    def sample(self, sample: Sample) -> Sample:
        return Sample(self.of(sample.results), self.of(sample.gate), self.of(sample.warnings))


def _is_literal(annotation: Any) -> bool:
    return type(annotation) is type(Literal["a"]) or any(map(_is_literal, get_args(annotation)))


def _samples() -> dict[str, Sample]:
    found = {name: make() for name, make in samples.SAMPLES.items() if name != "hostile"}
    return found | {name: make().sample for name, make in SCENARIOS.items() if name != "5000-cases"}


_SAMPLES = _samples()
_SITE = Site(repository="acme/widgets")


def _pages(fields: _Fields) -> Iterator[tuple[str, str]]:
    """Yield the name and Markdown of every page."""
    for name, original in _SAMPLES.items():
        sample = fields.sample(original)
        comment_id = fields.text("comment id")
        yield f"comment of {name}", render_comment(sample.report, comment_id, limit=_NO_LIMIT)
        yield f"summary of {name}", render_summary(sample.presented(site=_SITE), limit=_NO_LIMIT)
    problem = Problem(fields.text("message"), file=fields.text("file"), line=3, path=fields.text("path"))
    yield "problems", render_problems([problem] * 3)
    yield "nothing left", render_nothing_left(fields.text("commit"), _URL, escape.markdown_inline(fields.text("why")))
    for render in (render_running, render_unfinished, running_note):
        yield render.__name__, render(fields.text("commit"), _URL)
    yield "evaluation", render_markdown(_evaluation(fields), _NOW)


def _evaluation(fields: _Fields) -> AnalysedSuite:
    answers = [
        replace(
            answer(
                0.1 + number / 10,
                100.0 * number,
                name=fields.text(f"name {number}"),
                persona=fields.text(f"persona {number}"),
                metric_scores={fields.text("metric"): 0.5, "clarity": 0.2},
                reasons={"clarity": fields.text("reason"), fields.text("metric"): fields.text("reason")},
                absent={fields.text("absent"): fields.text("reason")},
            ),
            trace_id=fields.text(f"trace {number}"),
        )
        for number in range(8)
    ]
    evaluation = Evaluation(
        analyses=Analyses(outliers=True, trend=True, failures=True, failure_causes=True), goal=fields.text("goal")
    )
    report = EvaluationReport(style="detailed")
    name = fields.text("suite")
    return AnalysedSuite(name, name, answers, evaluate(answers, evaluation, AGGREGATE), report)


def _by_user_template(fields: _Fields, template: Path) -> str:
    sample = fields.sample(_SAMPLES["regressed"])
    warned: list[str] = []
    page = render_comment(sample.presented(comment_template=template), limit=_NO_LIMIT, warn=warned.append)
    assert warned == []
    return page


@pytest.mark.parametrize("letters", _BY_LETTERS)
def test_every_page_is_the_same_elements_as_with_letters(letters: str) -> None:
    pieces = _BY_LETTERS[letters]
    harmless = [_page(markdown) for _, markdown in _pages(_Fields(_harmless, letters))]
    # Each field has another piece each time.
    for shift in range(0, len(pieces), max(1, len(pieces) // _TURNS)):
        for (name, markdown), expected in zip(_pages(_Fields(str, *pieces, shift=shift)), harmless, strict=True):
            _assert_alike(f"{name} with {pieces!r} from {shift}", markdown, expected)


@pytest.mark.parametrize("start", range(5))
def test_a_user_template_makes_the_same_elements_as_with_letters(start: int, tmp_path: Path) -> None:
    template = tmp_path / "comment.md.j2"
    template.write_text(_TEMPLATE, encoding="utf-8")
    pieces = _PIECES[start::5]
    page, expected = (_by_user_template(_Fields(change, *pieces), template) for change in (str, _harmless))
    _assert_alike("user template", page, _page(expected))


@dataclass(frozen=True)
class _Page:
    """What a page has to be like."""

    skeleton: list[tuple[int, str]]
    words: Counter[str]
    length: int


def _page(markdown: str) -> _Page:
    page = rendered(markdown, hardbreaks=True)
    return _Page(_skeleton(page), _words(page), len(markdown))


def _assert_alike(name: str, markdown: str, expected: _Page) -> None:
    page = rendered(markdown, hardbreaks=True)
    assert_only_ours(page)
    assert _skeleton(page) == expected.skeleton, name
    assert _words(page) == expected.words, name
    # Size and depth are what the time of a parser depends on.
    assert len(markdown) < 15 * expected.length, name


@pytest.mark.parametrize("start", range(5))
def test_a_check_run_gets_the_same_pages_in_its_limits(start: int) -> None:
    pieces = _PIECES[start::5]
    texts = set()
    for place, original in enumerate(_SAMPLES.values()):
        sample = _Fields(str, *pieces, shift=place).sample(original)
        content = content_of(sample.presented(site=_SITE), PublishOptions())
        bodies = updates(content.conclusion, content.title, content.summary, content.details, content.annotations)
        for note in (content.summary, render_running(pieces[place] * 300, _URL)):
            bodies += [creation(_COMMIT, "agenteval", "", "id", note), abandonment(note)]
        for body in bodies:
            output = body["output"]
            assert len(output["title"].splitlines()) <= 1
            texts |= {output[key] for key in ("summary", "text") if key in output}
            for annotation in output.get("annotations", ()):
                assert len(annotation["title"].splitlines()) <= 1
        assert_only_ours(rendered(content.markdown, hardbreaks=True))
        # The badge shows numbers only.
        (badge,) = badge_files(sample.report)
        assert re.fullmatch(r"[\w %.,]+", json.loads(str(badge.text))["message"])
    # Many check runs have the same texts.
    for text in texts:
        assert_only_ours(rendered(text, hardbreaks=False))


def test_the_fields_reach_the_pages(tmp_path: Path) -> None:
    template = tmp_path / "comment.md.j2"
    template.write_text(_TEMPLATE, encoding="utf-8")
    fields = _Fields(str, "a")
    pages = [markdown for _, markdown in _pages(fields)]
    seen = sum((_words(rendered(page, hardbreaks=True)) for page in pages), Counter())
    assert len(seen) > 100
    assert len(_words(rendered(_by_user_template(fields, template), hardbreaks=True))) > 10


def _skeleton(page: Any) -> list[tuple[int, str]]:
    """Return depth and name of each element, without those that stand inside of a text."""
    return [
        (sum(1 for _ in element.iterancestors()), element.tag)
        for element in page.iter()
        if element.tag not in _WITHIN_A_TEXT
    ]


def _words(page: Any) -> Counter[str]:
    return Counter(word for text in page.itertext() for word in _WORD.findall(_without_gaps(text)))


def _without_gaps(text: str) -> str:
    return text.replace("\u200b", "")


def test_the_check_itself_finds_what_is_live() -> None:
    page = rendered(f"```text\n```\n{_LIVE}", hardbreaks=True)
    assert any("@octocat" in text for text in texts_outside_code(page))
    assert {"h1", "img", "a"} <= {element.tag for element in page.iter()}
