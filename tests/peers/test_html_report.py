"""What Chromium makes of the HTML report: it loads nothing, runs nothing foreign, and can be used with a keyboard.

Needs Chromium on the path, or its path in ``AGENTEVAL_CHROMIUM``.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.peers import chromium
from tests.peers.chromium import Page
from tests.unit.report import samples
from tests.unit.report.html.test_html import PAYLOADS
from tests.unit.report.samples import Sample, write_page

from agenteval.results.case import ToolCall, Usage
from agenteval.results.comparison import AnswerChange, ScoreChange
from agenteval.results.summary import MetricSummary

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(chromium.program() is None, reason="needs Chromium"),
]

_LONG = "A megabyte of <b>words</b> & more. " * 30_000
_HOSTILE = (
    *PAYLOADS,
    _LONG,
    "</SCRIPT ><svg onload=hacked()>",
    "&lt;script&gt;hacked()&lt;/script&gt;",
    "<base href=//evil>",
)
_OURS = {
    "html", "head", "meta", "title", "style", "body", "a", "header", "h1", "h2", "h3", "h4", "p", "span", "dl", "div",
    "dt", "dd", "main", "section", "ul", "li", "script", "table", "thead", "tbody", "tr", "th", "td", "figure",
    "figcaption", "svg", "path", "text", "rect", "circle", "details", "summary", "noscript", "footer", "label",
    "input", "select", "option", "button", "nav", "pre", "bdi", "ins", "del",
}  # fmt: skip
_ATTRIBUTES = {
    "lang", "charset", "name", "content", "http-equiv", "class", "href", "aria-labelledby", "aria-label", "aria-sort",
    "aria-expanded", "aria-controls", "aria-pressed", "id", "role", "tabindex", "scope", "colspan", "type",
    "hidden", "disabled",
    "open", "value", "autocomplete", "spellcheck", "viewBox", "d", "x", "y", "cx", "cy", "r", "rx", "width", "height",
    "text-anchor", "data-label",
}  # fmt: skip
_ELEMENTS = """JSON.stringify([...document.querySelectorAll('*')].flatMap((element) => {
  const name = element.localName;
  const attributes = [...element.attributes].map(({ name: key, value }) => [name, key, key === 'href' ? value : '']);
  return [...attributes, [name, '', '']];
}))"""
_OPEN_EVERYTHING = """(async () => {
  for (;;) {
    const closed = [...document.querySelectorAll('.toggle[aria-expanded="false"]')];
    const folded = [...document.querySelectorAll('details:not([open])')];
    const buttons = [...document.querySelectorAll('button')];
    const cut = buttons.filter((button) => button.textContent.startsWith('Show all'));
    if (!closed.length && !folded.length && !cut.length) return;
    for (const button of [...closed, ...cut]) button.click();
    for (const element of folded) element.open = true;
    await new Promise((done) => { setTimeout(done); });
  }
})()"""
_BEYOND_ITS_CARD = """JSON.stringify([...document.querySelectorAll('.compared, .compared *')].filter((element) => {
  const card = element.closest('.card');
  const room = card.getBoundingClientRect().right - parseFloat(getComputedStyle(card).paddingRight);
  return element.checkVisibility() && !element.closest('thead') && element.getBoundingClientRect().right > room + 1;
}).map((element) => element.textContent))"""
_STATUS = "document.querySelector('[role=status]').textContent"
_NAMES = "JSON.stringify([...document.querySelectorAll('.toggle')].map((button) => button.textContent))"


def _hostile() -> Sample:
    """Every payload in every place of a run."""
    sample = samples.regressed()
    comparison = sample.results.comparison
    assert comparison is not None
    cases, compared = [], []
    for text in _HOSTILE:
        score = samples.score(text[:5_000], 0.0, 1.0, reason=text).model_copy(
            update={"details": {text[:5_000]: text}, "model": text[:5_000]}
        )
        call = ToolCall(name=text, args={text[:5_000]: text}, result=text, error=text)
        turn = samples.turn(text, text, f"new {text}", score, error=text, tools=[call])
        turn = turn.model_copy(update={"retrieval_context": [text], "usage": Usage(input_tokens=1)})
        case = samples.case(text[:5_000], samples.iteration(turn, status="failed"), status="failed")
        cases.append(case.model_copy(update={"tags": [text[:5_000]]}))
        compared.append(
            comparison.cases[0].model_copy(
                update={
                    "id": case.id,
                    "name": text,
                    "metrics": [ScoreChange(id=text[:5_000], before=1.0, after=0.0, reason=text)],
                    "answers": [AnswerChange(turn=0, input=text, before=text, after=f"new {text}")],
                }
            )
        )
    results = samples.results(
        samples.suite(*cases, name=_HOSTILE[-1]), samples.suite(path=_HOSTILE[-2], name=_HOSTILE[-2]),
        comparison=comparison.model_copy(update={"cases": compared}),
    )  # fmt: skip
    return Sample(results, samples.hostile().gate)


def _seen(page: Page) -> tuple[set[str], set[str], set[str]]:
    """Names of elements and attributes, and targets of links."""
    found = json.loads(page.run(_ELEMENTS))
    return (
        {name for name, _, _ in found},
        {key for _, key, _ in found if key},
        {value for *_, value in found if value},
    )


def test_no_hostile_text_comes_to_life(page: Page, tmp_path: Path) -> None:
    page.open(write_page(_hostile(), tmp_path))
    assert page.run(_STATUS) == f"{len(_HOSTILE)} of {len(_HOSTILE)} cases"
    page.run(_OPEN_EVERYTHING)
    elements, attributes, links = _seen(page)
    assert elements <= _OURS
    assert attributes <= _ATTRIBUTES
    assert all(link.startswith("#") for link in links)
    assert page.run("document.querySelectorAll('script:not([type])').length") == 1
    assert page.run("document.createTreeWalker(document, NodeFilter.SHOW_COMMENT).nextNode() === null")
    assert page.complaints == []
    assert len(page.requests) == 1


def test_hostile_text_is_shown_as_it_is(page: Page, tmp_path: Path) -> None:
    page.open(write_page(_hostile(), tmp_path))
    page.run(_OPEN_EVERYTHING)
    shown = page.run("[...document.querySelectorAll('pre.text')].map((box) => box.textContent).join('\\n\\n')")
    for text in ("</script><script>alert(1)</script>", "<!--<script>", "' onmouseover=alert(1) x='", _LONG):
        assert text in shown
    assert "\u241b[31mred" in shown


def test_a_page_without_scripts_has_the_verdict_the_numbers_and_the_failures(page: Page, tmp_path: Path) -> None:
    path = write_page(samples.regressed(), tmp_path)
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.open(path)
        text = page.run("document.body.innerText")
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)
    for part in ("2 cases got worse", "50%", "3 cases did not pass", "Refund total", "expected 37.5, found 42.49"):
        assert part in text
    assert "Search in everything" not in text


def test_with_scripts_the_list_takes_the_place_of_the_table(page: Page, tmp_path: Path) -> None:
    page.open(write_page(samples.regressed(), tmp_path))
    assert page.run("document.getElementById('static').checkVisibility()") is False
    names = json.loads(page.run(_NAMES))
    assert names[:2] == ["Refund total", "Return label"]
    assert len(names) == 7


@pytest.mark.parametrize(
    ("fragment", "names"),
    [
        ({"status": "not-passed"}, ["Refund total", "Return label", "Warranty"]),
        ({"status": "passed", "change": "improved"}, ["Opening hours"]),
        ({"change": "removed"}, ["Fax number"]),
        ({"metric": "f1_score", "outcome": "worse", "sort": "score"}, ["Refund total", "Return label"]),
        ({"metric": "numeric", "outcome": "failed"}, ["Refund total", "Warranty"]),
        ({"q": "number 1009"}, ["Return label"]),
        ({"q": "42.49"}, ["Refund total"]),
        ({"q": "response"}, []),
        ({"sort": "-name", "status": "failed"}, ["Warranty", "Return label", "Refund total"]),
    ],
)
def test_a_view_can_be_linked(page: Page, tmp_path: Path, fragment: dict[str, str], names: list[str]) -> None:
    page.open(write_page(samples.regressed(), tmp_path), f"#{urlencode(fragment)}")
    page.wait_for(f"{_STATUS} === '{len(names)} of 7 cases'")
    assert json.loads(page.run(_NAMES)) == names


def test_filters_write_what_they_do_into_the_address(page: Page, tmp_path: Path) -> None:
    page.open(write_page(samples.regressed(), tmp_path))
    page.run("""(() => {
      const labels = [...document.querySelectorAll('label')];
      const select = labels.find((label) => label.textContent.startsWith('Status')).control;
      select.value = 'error';
      select.dispatchEvent(new Event('change'));
      select.value = 'failed';
      select.dispatchEvent(new Event('change'));
      const box = document.querySelector('input[type=search]');
      box.value = 'Order <1009';
      box.dispatchEvent(new Event('input'));
    })()""")
    page.wait_for(f"{_STATUS} === '0 of 7 cases'")
    assert page.run("location.hash") == "#q=Order+%3C1009&status=failed"


def test_a_link_opens_its_case_whatever_is_filtered(page: Page, tmp_path: Path) -> None:
    case = f"{samples.SUITE}::Warranty"
    page.open(write_page(samples.regressed(), tmp_path), f"#{urlencode({'case': case, 'status': 'passed'})}")
    page.wait_for("document.querySelector('[aria-expanded=true]') !== null")
    assert page.run("document.activeElement.textContent") == "Warranty"
    page.run("location.hash = 'case=' + encodeURIComponent('examples/support/agent.yaml::Gift cards')")
    page.wait_for("document.activeElement.textContent === 'Gift cards'")


def test_a_case_opens_with_the_keyboard(page: Page, tmp_path: Path) -> None:
    page.open(write_page(samples.regressed(), tmp_path))
    page.press("Tab", 9)
    assert page.run("document.activeElement.textContent") == "Skip to the cases"
    page.press("Enter", 13, "\r")
    for _ in range(30):
        page.press("Tab", 9)
        if page.run("document.activeElement.classList.contains('toggle')"):
            break
    page.press("Enter", 13, "\r")
    assert page.run("document.activeElement.getAttribute('aria-expanded')") == "true"
    assert page.run("document.getElementById(document.activeElement.getAttribute('aria-controls')).checkVisibility()")
    page.press("Enter", 13, "\r")
    assert page.run("document.querySelector('td.full')") is None


def test_answers_are_compared_word_by_word(page: Page, tmp_path: Path) -> None:
    case = f"{samples.SUITE}::Return label"
    page.open(write_page(samples.regressed(), tmp_path), f"#{urlencode({'case': case})}")
    page.wait_for("document.querySelector('ins') !== null")
    parts = json.loads(
        page.run("""JSON.stringify([...document.querySelector('ins').parentNode.childNodes]
      .map((node) => [node.nodeName.toLowerCase(), node.textContent]))""")
    )
    assert "".join(text for kind, text in parts if kind != "ins") == "The label for order 1009 was sent to you."
    assert "".join(text for kind, text in parts if kind != "del") == "I cannot help with that."
    assert ["#text", "."] in parts


def test_everything_of_a_case_is_there(page: Page, tmp_path: Path) -> None:
    call = ToolCall(name="search", args={"query": "refund"}, result={"hits": 2}, duration_ms=12.0)
    turn = samples.turn(
        "the question", "the expected", "the answer", samples.score(value=0.2, reason="the reason"), tools=[call]
    ).model_copy(
        update={
            "retrieval_context": ["the context"],
            "usage": Usage(input_tokens=1234, output_tokens=5, cost_usd=0.5),
        }
    )
    case = samples.case(
        "c",
        samples.iteration(turn, turn.model_copy(update={"index": 1}), status="failed"),
        samples.iteration(turn, status="passed", index=1),
        status="failed",
    )
    path = write_page(Sample(samples.results(samples.suite(case)), samples.broken().gate), tmp_path)
    page.open(path, f"#{urlencode({'case': case.id})}")
    page.wait_for("document.querySelector('td.full') !== null")
    page.run(_OPEN_EVERYTHING)
    text = page.run("document.querySelector('td.full').innerText")
    for part in (
        "Iteration 1: failed", "Iteration 2: passed", "Turn 1", "Turn 2", "the question", "the expected",
        "the answer", "search", '"query": "refund"', '"hits": 2', "the context", "the reason",
        "1,234 input tokens", "$0.5000", "250 ms",
    ):  # fmt: skip
        assert part in text


def test_long_lists_come_in_pages(page: Page, tmp_path: Path) -> None:
    page.open(write_page(samples.many(10_000), tmp_path))
    assert page.run(_STATUS) == "10,000 of 10,000 cases"
    assert len(json.loads(page.run(_NAMES))) == 50
    page.run("[...document.querySelectorAll('nav button')].at(-1).click()")
    assert page.run("document.querySelector('nav p').textContent") == "Page 2 of 200"
    assert json.loads(page.run(_NAMES))[0] == "Case 50"


@pytest.mark.parametrize("name", ["regressed", "hostile", "broken"])
def test_a_narrow_screen_needs_no_scrolling_sideways(page: Page, tmp_path: Path, name: str) -> None:
    page.call("Emulation.setDeviceMetricsOverride", width=360, height=800, deviceScaleFactor=1, mobile=True)
    try:
        page.open(write_page(samples.SAMPLES[name](), tmp_path))
        page.run(_OPEN_EVERYTHING)
        assert page.run("document.documentElement.scrollWidth") <= 360
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")


@pytest.mark.parametrize("width", [360, 500, 900, 1000, 1400])
def test_the_metrics_fit_their_card(page: Page, tmp_path: Path, width: int) -> None:
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
    try:
        page.open(write_page(_thoroughly_compared(), tmp_path))
        page.run(_OPEN_EVERYTHING)
        assert page.run("document.querySelectorAll('.compared td.change svg').length") == 3
        assert json.loads(page.run(_BEYOND_ITS_CARD)) == []
        assert page.run("document.documentElement.scrollWidth <= innerWidth")
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")


def _thoroughly_compared() -> Sample:
    """Metrics with the longest that verdicts, numbers and reasons usually are."""
    sample = samples.regressed()
    comparison = sample.results.comparison
    assert comparison is not None
    metrics = [
        comparison.metrics[0].model_copy(
            update={
                "id": name, "gating": name != "fluency", "verdict": "unchanged",
                "reason": "it may be chance " * 40, "advice": "20 more cases would halve it",
                "difference": -0.2934, "interval": (-0.4123, -0.1711), "p": 0.0004, "detectable_drop": 0.045,
            }
        )
        for name in ("contextual_precision", "fluency", "a_metric_with_a_very_long_name_of_its_own")
    ]  # fmt: skip
    summary = sample.results.summary.model_copy(
        update={"metrics": {metric.id: MetricSummary(n=123_456, mean=0.62, pass_rate=0.83) for metric in metrics}}
    )
    compared = comparison.model_copy(update={"metrics": metrics})
    return replace(sample, results=sample.results.model_copy(update={"comparison": compared, "summary": summary}))


def test_every_control_has_a_name(page: Page, tmp_path: Path) -> None:
    page.open(write_page(samples.regressed(), tmp_path))
    page.run(_OPEN_EVERYTHING)
    page.call("Accessibility.enable")
    tree: list[dict[str, Any]] = page.call("Accessibility.getFullAXTree")["nodes"]
    interactive = {"button", "link", "combobox", "searchbox", "image", "region", "table", "navigation"}
    unnamed = [
        node["role"]["value"]
        for node in tree
        if not node.get("ignored") and node["role"]["value"] in interactive - {"table"} and not node["name"]["value"]
    ]
    assert unnamed == []
    headings = page.run(
        "[...document.querySelectorAll('h1, h2, h3, h4')].map((heading) => heading.localName).join(' ')"
    )
    assert headings.split()[0] == "h1"
    assert headings.count("h1") == 1
