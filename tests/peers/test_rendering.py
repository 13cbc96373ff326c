"""What GitHub's own Markdown parser makes of reports full of hostile text."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable

import pytest
from tests.peers.github_markdown import OURS, REFERENCE, assert_only_ours, cmark, rendered, texts_outside_code
from tests.unit.report import samples
from tests.unit.report.samples import HOSTILE_TEXTS, Sample
from tests.unit.report.scenarios import SCENARIOS

from agenteval.core import escape
from agenteval.core.errors import Kind, Problem
from agenteval.core.mistakes import page_of
from agenteval.report.markdown import render_comment, render_summary
from agenteval.report.overview import render_problems

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(shutil.which("cmark-gfm") is None, reason="needs cmark-gfm"),
]

#: Where a problem whose kind is not given leads to.
_HELP = page_of(Kind.VALUE)


def _comment(sample: Sample) -> str:
    return render_comment(sample.report)


def _summary(sample: Sample) -> str:
    return render_summary(sample.report)


def _inline(sample: Sample) -> str:
    return "\n\n".join(map(escape.markdown_inline, HOSTILE_TEXTS))


def _lines(sample: Sample) -> str:
    rows = (f"| {escape.markdown_lines(text)} |" for text in HOSTILE_TEXTS)
    return "\n".join(["| text |", "|---|", *rows])


@pytest.mark.parametrize("hardbreaks", [False, True])
@pytest.mark.parametrize("render", [_comment, _summary, _inline, _lines])
def test_nothing_hostile_comes_to_life(render: Callable[[Sample], str], hardbreaks: bool) -> None:
    page = rendered(render(samples.hostile()), hardbreaks)
    assert_only_ours(page)


@pytest.mark.parametrize("name", [*samples.SAMPLES, *SCENARIOS])
def test_sections_are_closed(name: str) -> None:
    sample = samples.SAMPLES[name]() if name in samples.SAMPLES else SCENARIOS[name]().sample
    for render in (_comment, _summary):
        source = cmark(render(sample), hardbreaks=True)
        for element in ("details", "summary", "table", "code", "pre", "b", "i", "sub", "a", "del", "ins"):
            assert len(re.findall(f"<{element}[ >]", source)) == source.count(f"</{element}>")


# Half of it, because rendering takes seconds.
@pytest.mark.parametrize(
    ("text", "render"),
    [
        ("<b>@octocat " * 45_000, _comment),
        ("`" * 500_000, _summary),
        ("\n|" * 250_000, _comment),
        ("</details>" * 50_000, _summary),
    ],
    ids=["references", "fences", "tables", "ends"],
)
def test_half_a_megabyte_in_every_place_stays_text(text: str, render: Callable[[Sample], str]) -> None:
    page = rendered(render(samples.many_regressions(7, text)), hardbreaks=True)
    elements = {element.tag for element in page.iter() if isinstance(element.tag, str)} - {"div"}
    assert elements <= OURS
    assert [part for part in texts_outside_code(page) if REFERENCE.search(part)] == []


def test_problems_stay_text() -> None:
    for text in HOSTILE_TEXTS:
        problems = [Problem(text, file=text, line=1, path=text), Problem("\n".join([text] * 3))]
        page = rendered(render_problems(problems), hardbreaks=True)
        assert {element.tag for element in page.iter()} <= {"div", "h3", "ul", "li", "span", "a"}
        assert [(link.text, dict(link.attrib)) for link in page.iter("a")] == [("help", {"href": _HELP})] * 2
        assert [part for part in texts_outside_code(page) if REFERENCE.search(part)] == []


def test_the_check_itself_finds_references() -> None:
    page = rendered("hello @octocat, see #1, acme/widgets#3, GH-2 and 1a2b3c4d5e6f7a8b\n\n`@code`", hardbreaks=False)
    (text,) = [text for text in texts_outside_code(page) if text.strip()]
    assert len(REFERENCE.findall(text)) == 5
