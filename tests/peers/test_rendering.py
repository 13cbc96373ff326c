"""What GitHub's own Markdown parser makes of reports full of hostile text."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from lxml import html
from tests.unit import report_samples as samples
from tests.unit.report_samples import HOSTILE_TEXTS, Sample

from agenteval.report import escape
from agenteval.report.markdown import render_comment, render_summary

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(shutil.which("cmark-gfm") is None, reason="needs cmark-gfm"),
]

_CMARK = ["cmark-gfm", "--unsafe", "--github-pre-lang"]
_EXTENSIONS = ["table", "strikethrough", "autolink", "tagfilter", "tasklist", "footnotes"]
_OURS = {"h3", "h4", "h5", "p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "pre", "code"}
_OURS |= {"details", "summary", "b", "i", "br", "sub", "span"}
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
    assert not list(page.iter(html.etree.Comment))
    assert [text for text in _texts_outside_code(page) if _REFERENCE.search(text)] == []


@pytest.mark.parametrize("render", [_comment, _summary])
@pytest.mark.parametrize("name", samples.SAMPLES)
def test_sections_are_closed(name: str, render: Callable[[Sample], str]) -> None:
    source = _cmark(render(samples.SAMPLES[name]()), hardbreaks=True)
    for element in ("details", "summary", "table", "code", "pre", "b", "i", "sub"):
        assert len(re.findall(f"<{element}[ >]", source)) == source.count(f"</{element}>")


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
