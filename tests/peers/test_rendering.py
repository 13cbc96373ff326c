"""What GitHub's own Markdown parser makes of reports full of hostile text."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from lxml import html
from tests.unit.report import samples
from tests.unit.report.samples import HOSTILE_TEXTS, Sample
from tests.unit.report.scenarios import SCENARIOS

from agenteval.core.errors import Problem
from agenteval.core.text import escape
from agenteval.report.markdown.placeholders import render_problems
from agenteval.report.markdown.render import render_comment, render_summary

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(shutil.which("cmark-gfm") is None, reason="needs cmark-gfm"),
]

_CMARK = ["cmark-gfm", "--unsafe", "--github-pre-lang"]
_EXTENSIONS = ["table", "strikethrough", "autolink", "tagfilter", "tasklist", "footnotes"]
_OURS = {"h3", "h4", "h5", "p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "pre", "code"}
_OURS |= {"details", "summary", "b", "i", "br", "sub", "span", "a", "del", "ins"}
# What rehype-sanitize, whose default schema follows GitHub, lets through of it; "open" is not among it.
_ATTRIBUTES = {"a": {"href"}, "td": {"align"}, "th": {"align"}, "details": {"open"}, "pre": {"lang"}}
_LINK = re.compile(r"https://github\.com/acme/widgets/(?:blob/[0-9a-f]{40}/[^\s\"<>?]*|actions/runs/\d+)")
# GitHub looks for references in the text of the rendered page, but not inside code.
_REFERENCE = re.compile(r"(?:^|\W)(?:@[a-z0-9]|[\w/-]*#\d|gh-\d|[0-9a-f]{7,40}\b)", re.IGNORECASE)


def _comment(sample: Sample) -> str:
    return render_comment(sample.results, sample.gate)


def _summary(sample: Sample) -> str:
    return render_summary(sample.results, sample.gate)


def _inline(sample: Sample) -> str:
    return "\n\n".join(map(escape.markdown_inline, HOSTILE_TEXTS))


def _lines(sample: Sample) -> str:
    rows = (f"| {escape.markdown_lines(text)} |" for text in HOSTILE_TEXTS)
    return "\n".join(["| text |", "|---|", *rows])


@pytest.mark.parametrize("hardbreaks", [False, True])
@pytest.mark.parametrize("render", [_comment, _summary, _inline, _lines])
def test_nothing_hostile_comes_to_life(render: Callable[[Sample], str], hardbreaks: bool) -> None:
    page = _rendered(render(samples.hostile()), hardbreaks)
    elements = {element.tag for element in page.iter() if isinstance(element.tag, str)} - {"div"}
    assert elements <= _OURS
    for element in page.iter():
        assert set(element.attrib) <= _ATTRIBUTES.get(element.tag, set())
        assert element.tag != "a" or _LINK.fullmatch(element.get("href"))
    assert not list(page.iter(html.etree.Comment))
    assert [text for text in _texts_outside_code(page) if _REFERENCE.search(text)] == []


@pytest.mark.parametrize("render", [_comment, _summary])
@pytest.mark.parametrize("name", [*samples.SAMPLES, *SCENARIOS])
def test_sections_are_closed(name: str, render: Callable[[Sample], str]) -> None:
    sample = samples.SAMPLES[name]() if name in samples.SAMPLES else SCENARIOS[name]().sample
    source = _cmark(render(sample), hardbreaks=True)
    for element in ("details", "summary", "table", "code", "pre", "b", "i", "sub", "a", "del", "ins"):
        assert len(re.findall(f"<{element}[ >]", source)) == source.count(f"</{element}>")


@pytest.mark.parametrize("render", [_comment, _summary])
@pytest.mark.parametrize("text", ["<b>@octocat " * 90_000, "`" * 1_000_000, "\n|" * 500_000, "</details>" * 100_000])
def test_a_megabyte_in_every_place_stays_text(text: str, render: Callable[[Sample], str]) -> None:
    page = _rendered(render(samples.many_regressions(7, text)), hardbreaks=True)
    elements = {element.tag for element in page.iter() if isinstance(element.tag, str)} - {"div"}
    assert elements <= _OURS
    assert [part for part in _texts_outside_code(page) if _REFERENCE.search(part)] == []


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_problems_stay_text(text: str) -> None:
    problems = [Problem(text, file=text, line=1, path=text), Problem("\n".join([text] * 3))]
    page = _rendered(render_problems(problems), hardbreaks=True)
    assert {element.tag for element in page.iter()} <= {"div", "h3", "ul", "li", "span"}
    assert [part for part in _texts_outside_code(page) if _REFERENCE.search(part)] == []


def test_the_check_itself_finds_references() -> None:
    page = _rendered("hello @octocat, see #1, acme/widgets#3, GH-2 and 1a2b3c4d5e6f7a8b\n\n`@code`", hardbreaks=False)
    (text,) = [text for text in _texts_outside_code(page) if text.strip()]
    assert len(_REFERENCE.findall(text)) == 5


def _rendered(text: str, hardbreaks: bool) -> Any:
    return html.fragment_fromstring(_cmark(text, hardbreaks), create_parent="div")


def _cmark(text: str, hardbreaks: bool) -> str:
    extensions = [argument for name in _EXTENSIONS for argument in ("-e", name)]
    command = [*_CMARK, *extensions, *(["--hardbreaks"] if hardbreaks else [])]
    return subprocess.run(command, input=text, capture_output=True, text=True, encoding="utf-8", check=True).stdout


def _texts_outside_code(page: Any) -> list[str]:
    return [str(text) for text in page.xpath(".//text()[not(ancestor::code) and not(ancestor::pre)]")]
