"""What Chromium makes of the HTML report: it loads nothing, runs nothing foreign, and can be used with a keyboard.

Needs Chromium on the path, or its path in ``AGENTEVAL_CHROMIUM``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
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

from agenteval.report.html import render_runs
from agenteval.results.case import ToolCall, Usage
from agenteval.results.comparison import AnswerChange, BaselineCase, BaselineRun, ScoreChange
from agenteval.results.model import MetricSummary

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
    "input", "select", "option", "button", "nav", "pre", "bdi", "ins", "del", "dialog", "kbd", "h5", "strong",
    "code", "ol", "b",
}  # fmt: skip
_ATTRIBUTES = {
    "lang", "charset", "name", "content", "http-equiv", "class", "href", "aria-labelledby", "aria-label", "aria-sort",
    "aria-expanded", "aria-controls", "aria-pressed", "id", "role", "tabindex", "scope", "colspan", "type",
    "hidden", "disabled",
    "open", "value", "autocomplete", "spellcheck", "viewBox", "d", "x", "y", "cx", "cy", "r", "rx", "width", "height",
    "text-anchor", "data-label", "data-chip", "data-metric", "style",
    "title", "placeholder", "aria-hidden", "aria-selected",
    "aria-posinset", "aria-setsize", "aria-activedescendant", "aria-current",
}  # fmt: skip
_ELEMENTS = """JSON.stringify([...document.querySelectorAll('*')].flatMap((element) => {
  const name = element.localName;
  const attributes = [...element.attributes].map(({ name: key, value }) => [name, key, key === 'href' ? value : '']);
  return [...attributes, [name, '', '']];
}))"""
_OPEN_EVERYTHING = """(async () => {
  for (;;) {
    const folded = [...document.querySelectorAll('details:not([open])')];
    const buttons = [...document.querySelectorAll('button')];
    const cut = buttons.filter((button) => button.textContent.startsWith('Show all'));
    if (!folded.length && !cut.length) return;
    for (const button of cut) button.click();
    for (const element of folded) element.open = true;
    await new Promise((done) => { setTimeout(done); });
  }
})()"""
_BEYOND_ITS_CARD = """JSON.stringify([...document.querySelectorAll('.compared, .compared *')].filter((element) => {
  const card = element.closest('.card');
  const room = card.getBoundingClientRect().right - parseFloat(getComputedStyle(card).paddingRight);
  return element.checkVisibility() && !element.closest('thead') && element.getBoundingClientRect().right > room + 1;
}).map((element) => element.textContent))"""
_STATUS = "document.getElementById('count').textContent"
_TITLE = "document.querySelector('#one-title bdi').textContent"
_SECTIONS = ("cases", "metrics", "cost", "run")


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


def _texts(page: Page, selector: str, shown: str = "textContent") -> list[str]:
    """The texts of the elements, hidden ones too, or as they are shown."""
    script = f"JSON.stringify([...document.querySelectorAll({json.dumps(selector)})].map((found) => found.{shown}))"
    found: list[str] = json.loads(page.run(script))
    return found


def _names(page: Page) -> list[str]:
    return _texts(page, "#list .name")


@contextmanager
def _screen(page: Page, width: int, *, mobile: bool = False) -> Iterator[None]:
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=mobile)
    try:
        yield
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")


def _seen(page: Page) -> tuple[set[str], set[str], set[str]]:
    """Names of elements and attributes, and targets of links."""
    found = json.loads(page.run(_ELEMENTS))
    return (
        {name for name, _, _ in found},
        {key for _, key, _ in found if key},
        {value for *_, value in found if value},
    )


def test_no_hostile_text_comes_to_life_and_all_is_shown_as_it_is(page: Page, tmp_path: Path) -> None:
    page.open(write_page(_hostile(), tmp_path))
    assert page.run(_STATUS) == f"{len(_HOSTILE)} of {len(_HOSTILE)} cases"
    page.call("Runtime.evaluate", expression="document.getElementById('list').focus()")
    shown = ""
    for _ in _HOSTILE:
        page.run(_OPEN_EVERYTHING)
        elements, attributes, links = _seen(page)
        assert elements <= _OURS
        assert attributes <= _ATTRIBUTES
        assert all(link.startswith("#") for link in links)
        shown += page.run("[...document.querySelectorAll('pre.text')].map((box) => box.textContent).join('\\n\\n')")
        page.press("j", ord("J"), "j")
    assert page.run("document.querySelectorAll('script:not([type])').length") == 1
    assert page.run("document.createTreeWalker(document, NodeFilter.SHOW_COMMENT).nextNode() === null")
    for text in ("</script><script>alert(1)</script>", "<!--<script>", "' onmouseover=alert(1) x='", _LONG):
        assert text in shown
    assert "\u241b[31mred" in shown
    assert page.complaints == []
    assert len(page.requests) == 1


def test_a_page_without_scripts_has_the_verdict_the_numbers_and_the_failures(page: Page, tmp_path: Path) -> None:
    path = write_page(samples.regressed(), tmp_path)
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.open(path)
        text = page.run("document.body.innerText")
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)
    for part in (
        "failed support: 2 of 5 cases broke",
        "50 %",
        "3 cases did not pass",
        "Refund total",
        "expected 37.5, found 42.49",
    ):
        assert part in text
    assert "Search in everything" not in text


def test_with_scripts_list_and_case_take_the_place_of_the_table(page: Page, tmp_path: Path) -> None:
    page.open(write_page(samples.regressed(), tmp_path))
    assert page.run("document.getElementById('static').checkVisibility()") is False
    assert _names(page) == ["Refund total", "Return label", "Fax number"]
    assert "expected 37.5, found 42.49" in "|".join(_texts(page, ".group", "innerText"))
    assert page.run(_TITLE) == "Refund total"
    assert page.run("document.getElementById('metrics').checkVisibility()") is False
    # Chips tell how many cases they show and write the address.
    shown = _texts(page, ".chip", "innerText")
    assert shown[0] == "needs attention 3"
    assert {"✗ broke 2", "○ known failure 1", "− removed 1", "✓ passed 1", "all 7", "✗ numeric 1"} <= set(shown)
    page.run("[...document.querySelectorAll('.chip')].find((chip) => chip.innerText === '✗ broke 2').click()")
    assert page.run("document.activeElement.innerText") == "✗ broke 2"
    page.run("[...document.querySelectorAll('.chip')].find((chip) => chip.innerText === '✗ numeric 1').click()")
    page.run("""(() => {
      const box = document.getElementById('search');
      box.value = 'Order <1009';
      box.dispatchEvent(new Event('input'));
    })()""")
    page.wait_for(f"{_STATUS} === '0 of 7 cases'")
    assert page.run("location.hash") == "#kind=broke&q=Order+%3C1009&metric=numeric"


# The fragment of an address, and the names of the cases in the list, or their number.
VIEWS: tuple[tuple[dict[str, str], list[str] | int], ...] = (
    ({"kind": "all"}, 7),
    ({"kind": "broke"}, ["Refund total", "Return label"]),
    ({"kind": "repaired"}, ["Opening hours"]),
    ({"kind": "removed"}, ["Fax number"]),
    ({"kind": "no-such-kind"}, []),
    ({"kind": "all", "metric": "f1_score", "outcome": "worse"}, ["Refund total", "Return label"]),
    ({"kind": "all", "metric": "numeric"}, ["Refund total", "Warranty"]),
    ({"q": "number 1009"}, ["Return label"]),
    ({"q": "42.49"}, ["Refund total"]),
    ({"q": "response"}, []),
    ({"sort": "name"}, ["Fax number", "Refund total", "Return label"]),
    ({"kind": "broke", "sort": "-name"}, ["Return label", "Refund total"]),
)


def test_a_view_can_be_linked(page: Page, tmp_path: Path) -> None:
    path = write_page(samples.regressed(), tmp_path)
    for fragment, names in VIEWS:
        page.open(path, f"#{urlencode(fragment)}")
        amount = names if isinstance(names, int) else len(names)
        page.wait_for(f"{_STATUS} === '{amount} of 7 cases'")
        assert isinstance(names, int) or _names(page) == names, fragment


def test_a_link_opens_its_case_whatever_is_filtered(page: Page, tmp_path: Path) -> None:
    case = f"{samples.SUITE}::Warranty"
    page.open(write_page(samples.regressed(), tmp_path), f"#{urlencode({'case': case, 'kind': 'passed'})}")
    page.wait_for(f"{_TITLE} === 'Warranty'")
    assert page.run("document.activeElement.id") == "one-title"
    page.run("location.hash = 'case=' + encodeURIComponent('examples/support/agent.yaml::Gift cards')")
    page.wait_for(f"{_TITLE} === 'Gift cards'")


def test_keys_move_choose_copy_and_turn(page: Page, tmp_path: Path) -> None:
    page.open(write_page(samples.regressed(), tmp_path))
    seen = []
    for key in "jjknn":
        page.press(key, ord(key.upper()), key)
        seen.append(page.run(_TITLE))
    assert seen == ["Return label", "Fax number", "Return label", "Refund total", "Return label"]
    here = "[...document.querySelectorAll('.side.now h4')].at(-1).textContent"
    assert page.run(here) == "here · iteration 1 of 3"
    page.press("i", ord("I"), "i")
    assert page.run(here) == "here · iteration 2 of 3"
    page.press("e", ord("E"), "e")
    assert page.run("[...document.querySelectorAll('.side.before h4')].at(-1).textContent") == "expected"
    assert "iteration=2&view=expected" in page.run("location.hash")
    page.press("c", ord("C"), "c")
    command = f"agenteval run {samples.SUITE} --case 'Return label'"
    page.wait_for(f"document.getElementById('said').textContent.includes({json.dumps(command)})")
    page.press("/", 191, "/")
    assert page.run("document.activeElement.id") == "search"
    # The case contains this letter, so that it stays when the search has taken effect.
    page.press("n", ord("N"), "n")
    page.wait_for("location.hash.includes('q=n')")
    assert page.run(_TITLE) == "Return label"
    page.press("Escape", 27)
    assert page.run("document.activeElement.id") == "list"
    page.press("?", 191, "?")
    assert page.run("document.getElementById('keys').open")
    page.run("document.getElementById('keys-switch').click()")
    page.press("Escape", 27)
    page.wait_for("!document.getElementById('keys').open")
    before = page.run(_TITLE)
    page.press("j", ord("J"), "j")
    assert page.run(_TITLE) == before


def test_the_list_is_one_stop_of_the_tabulator_and_moves_with_arrows(page: Page, tmp_path: Path) -> None:
    page.open(write_page(samples.regressed(), tmp_path))
    page.press("Tab", 9)
    assert page.run("document.activeElement.textContent") == "Skip to the cases"
    page.press("Enter", 13, "\r")
    for _ in range(30):
        page.press("Tab", 9)
        if page.run("document.activeElement.id === 'list'"):
            break
    page.press("ArrowDown", 40)
    assert page.run(_TITLE) == "Return label"
    chosen = "document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))"
    assert page.run(f"{chosen}.getAttribute('aria-selected')") == "true"
    assert page.run(f"{chosen}.getAttribute('aria-posinset')") == "2"
    page.press("End", 35)
    assert page.run(_TITLE) == "Fax number"
    page.press("Enter", 13, "\r")
    assert page.run("document.activeElement.id") == "one-title"


def test_words_are_marked_where_two_answers_have_enough_in_common(page: Page, tmp_path: Path) -> None:
    for before, after, marks in (
        ("You get it within 30 days.", "You get it within 14 days.", ["30 ", "14 "]),
        ("The label for order 1009 was sent to you.", "I cannot help with that.", []),
        ("a b c d e", "a b x y z", ["c d e", "x y z"]),
        ("a b c d e", "a w x y z", []),
    ):
        page.open(write_page(_answered(before, after), tmp_path))
        assert _texts(page, "del, ins") == marks
        assert _texts(page, ".side .text") == [before, after]
        page.press("d", ord("D"), "d")
        assert _texts(page, "del, ins") == []


def _answered(before: str, after: str) -> Sample:
    """The first case of a run alone, with two answers."""
    sample = samples.regressed()
    comparison = sample.results.comparison
    assert comparison is not None
    case = samples.failed_case("Refund total", "37.50", after)
    answers = [AnswerChange(turn=0, input="q", before=before, after=after)]
    compared = comparison.model_copy(
        update={"cases": [comparison.cases[0].model_copy(update={"answers": answers, "metrics": []})]}
    )
    return Sample(samples.results(samples.suite(case), comparison=compared), sample.gate)


def test_tool_calls_of_both_runs_are_one_timeline(page: Page, tmp_path: Path) -> None:
    def call(name: str, result: str = "ok", **args: Any) -> dict[str, Any]:
        return {"name": name, "args": args, "result": result, "duration_ms": 12.0}

    before = [call("find", order=4711), call("cancel", order=4711), call("search", "3 hits", query="a refund", top=3)]
    now = [call("find", order=4711), call("search", "0 hits", query="a return", top=3), call("mail", to="me")]
    sample = _answered("done", "done")
    (case,) = sample.results.suites[0].cases
    turn = case.turns[0].model_copy(update={"tool_calls": [ToolCall.model_validate(each) for each in now]})
    called = samples.case("Refund total", samples.iteration(turn, status="failed"), status="failed")
    path = write_page(
        Sample(samples.results(samples.suite(called), comparison=sample.results.comparison), sample.gate), tmp_path
    )
    earlier = json.dumps({"calls_before": before, "latency_before": 800.0})[1:-1]
    path.write_text(path.read_text("utf-8").replace('"answers":[{', f'"answers":[{{{earlier},'), "utf-8")
    page.open(path)
    shown = """JSON.stringify([...document.querySelectorAll('.side.SIDE .call')].map((call) =>
      [call.className, (call.querySelector('.line') ?? call).textContent]))"""
    assert json.loads(page.run(shown.replace("SIDE", "before"))) == [
        ["call same", "⚙ find(order: 4711) → ok"],
        ["call gone", "⚙ cancel(order: 4711) → ok"],
        ["call other", "⚙ search(query: a refund, top: 3) → 3 hits"],
    ]
    assert json.loads(page.run(shown.replace("SIDE", "now"))) == [
        ["call same", "⚙ find(order: 4711) → ok"],
        ["call missing", "cancel was not called"],
        ["call other", "⚙ search(query: a return, top: 3) → 0 hits"],
        ["call added", "⚙ mail(to: me) → ok"],
    ]
    assert _texts(page, ".call del, .call ins") == ["refund", "3 ", "return", "0 "]
    assert page.run("document.querySelector('.side.before .scores').textContent") == "800 ms"


def test_the_copied_command_names_one_case_and_nothing_else(page: Page, tmp_path: Path) -> None:
    said = "document.getElementById('said').textContent"
    for name, command in {
        "it's": "--case 'it'\\''s'",
        "$(reboot)`x`": "--case '$(reboot)`x`'",
        "plain-1": "--case plain-1",
        "-x": "--case=-x",
        "a\nb": "",
        "a\x1bb": "",
    }.items():
        sample = Sample(samples.results(samples.suite(samples.passed_case(name))), samples.green().gate)
        page.open(write_page(sample, tmp_path))
        page.press("c", ord("C"), "c")
        page.wait_for(f"{said} !== ''")
        if command:
            assert page.run(said).endswith(f"agenteval run {samples.SUITE} {command}")
        else:
            assert page.run(said) == "there is no command for this case"
            assert page.run("document.querySelector('#one .link:not(.to-list)')") is None


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
    page.run(_OPEN_EVERYTHING)
    text = page.run("document.getElementById('one').innerText")
    for part in (
        "iteration 1 of 2", "1 of 2 here", "Turn 1", "Turn 2", "the question", "the expected",
        "the answer", "search(query: refund)", '"query": "refund"', '"hits": 2', "the context", "the reason",
        "1,234 input tokens", "$0.5000", "250 ms", "numeric 0.20 < 1.00",
    ):  # fmt: skip
        assert part in text


def test_iterations_that_are_alike_are_shown_once(page: Page, tmp_path: Path) -> None:
    turn = samples.turn("q", None, "a", samples.score())
    alike = [
        samples.iteration(turn.model_copy(update={"latency_ms": 10.0 * place}), index=place) for place in range(3)
    ]
    path = write_page(
        Sample(samples.results(samples.suite(samples.case("c", *alike))), samples.green().gate), tmp_path
    )
    page.open(path)
    assert page.run("document.querySelector('.side.now h4').textContent") == "here · 3 iterations, all alike"


def test_of_a_long_list_only_the_visible_rows_are_drawn(page: Page, tmp_path: Path) -> None:
    page.open(write_page(samples.many(10_000), tmp_path))
    assert page.run(_STATUS) == "10,000 of 10,000 cases"
    drawn = _names(page)
    assert drawn[0] == "Case 0"
    assert len(drawn) < 100
    page.run("document.getElementById('list').focus()")
    page.press("End", 35)
    page.wait_for(f"{_TITLE} === 'Case 9999'")
    names = _names(page)
    assert names[-1] == "Case 9999"
    assert len(names) < 100
    page.run("document.getElementById('list').scrollTop = 0")
    page.wait_for("document.querySelector('#list .name').textContent === 'Case 0'")


def test_sections_are_tabs_with_scripts(page: Page, tmp_path: Path) -> None:
    path = write_page(samples.regressed(), tmp_path)
    for name, fragment in {"cases": "", "metrics": "#metrics", "cost": "#tab=cost", "run": "#run"}.items():
        page.open(path, fragment)
        seen = [each for each in _SECTIONS if page.run(f"document.getElementById('{each}').checkVisibility()")]
        assert seen == [name]
    page.run("document.querySelector('#tabs a[href=\"#metrics\"]').click()")
    assert page.run("location.hash") == "#tab=metrics"
    assert page.run("document.querySelector('#tabs [aria-current]').textContent") == "Metrics"


@pytest.mark.parametrize("name", ["regressed", "hostile", "broken"])
def test_a_narrow_screen_needs_no_scrolling_sideways(page: Page, tmp_path: Path, name: str) -> None:
    path = write_page(samples.SAMPLES[name](), tmp_path)
    with _screen(page, 360, mobile=True):
        for section in _SECTIONS:
            page.open(path, f"#tab={section}")
            page.run(_OPEN_EVERYTHING)
            assert page.run("document.documentElement.scrollWidth") <= 360, section


def test_the_metrics_fit_their_card(page: Page, tmp_path: Path) -> None:
    path = write_page(_thoroughly_compared(), tmp_path)
    for width in (360, 900, 1400):
        with _screen(page, width):
            page.open(path, "#tab=metrics")
            page.run(_OPEN_EVERYTHING)
            assert page.run("document.querySelectorAll('.compared td.change svg').length") == 3
            assert json.loads(page.run(_BEYOND_ITS_CARD)) == [], width
            assert page.run("document.documentElement.scrollWidth <= innerWidth"), width


def _thoroughly_compared() -> Sample:
    """Metrics with the longest that verdicts, numbers and reasons usually are."""
    sample = samples.regressed()
    comparison = sample.results.comparison
    assert comparison is not None
    metrics = [
        comparison.metrics[0].model_copy(
            update={
                "id": name, "gating": name != "fluency", "state": "proven", "n": 123_456,
                "difference": -0.2934, "low": -0.4123, "high": -0.1711, "p": 0.0004, "limit": 0.017,
                "passes": 16, "runs": 10, "iterations": 3, "detectable_drop": 0.045,
            }
        )
        for name in ("contextual_precision", "fluency", "a_metric_with_a_very_long_name_of_its_own")
    ]  # fmt: skip
    summary = sample.results.summary.model_copy(
        update={"metrics": {metric.id: MetricSummary(n=123_456, mean=0.62, pass_rate=0.83) for metric in metrics}}
    )
    compared = comparison.model_copy(update={"metrics": metrics})
    return replace(sample, results=sample.results.model_copy(update={"comparison": compared, "summary": summary}))


def test_head_and_cases_are_as_wide_as_the_window(page: Page, tmp_path: Path) -> None:
    for sample in (samples.green(), Sample(samples.results(), samples.green().gate)):
        page.open(write_page(sample, tmp_path))
        widths = _texts(page, "header, main", "offsetWidth")
        assert set(widths) == {page.run("document.documentElement.clientWidth")}
        assert page.run("document.documentElement.scrollHeight <= innerHeight")


def test_the_past_of_a_case_has_a_square_for_each_iteration(page: Page, tmp_path: Path) -> None:
    sample = samples.regressed()
    case = sample.results.suites[0].cases[0]
    scores: list[dict[str, list[float]]] = [
        {"numeric": [1.0, 1.0], "f1_score": [0.9, 0.4]},
        {"numeric": [1.0], "f1_score": [0.5]},
        {"bleu": [0.1, 0.2]},
    ]
    earlier = [
        BaselineRun(commit="a" * 40, run_id=str(place), created_at=f"2026-11-1{place}",
                  cases={case.id: BaselineCase(fingerprint="f", scores=each)})
        for place, each in enumerate(scores)
    ]  # fmt: skip
    results = sample.results.model_copy(update={"baseline_runs": earlier})
    page.open(write_page(replace(sample, results=results), tmp_path))
    assert _texts(page, ".strip .run") == ["✓✗", "✓", "✗"]
    words = page.run("document.querySelector('.strip .words').textContent")
    assert words == "passed 2 of 3 in the last 2 runs of main; 0 of 1 here"


def test_cases_with_the_same_wrong_answer_are_one_group(page: Page, tmp_path: Path) -> None:
    cases = [samples.failed_case(f"c{number}", f"{number} words", "Hello!") for number in range(3)]
    cases.insert(1, samples.failed_case("other", "b", "c"))
    path = write_page(Sample(samples.results(samples.suite(*cases)), samples.broken().gate), tmp_path)
    page.open(path)
    assert _texts(page, ".group", "innerText") == [
        "! failed · 3 for one reason\nall give the same answer now: “Hello!”",
        "! failed\nexpected b, found c",
    ]
    assert _names(page) == ["c0", "c1", "c2", "other"]


def test_numbers_lead_to_their_cases(page: Page, tmp_path: Path) -> None:
    page.open(write_page(samples.regressed(), tmp_path), "#tab=metrics")
    page.run(_OPEN_EVERYTHING)
    assert "2 cases fell" in _texts(page, "[data-metric] a")
    page.run("[...document.querySelectorAll('[data-metric] a')].find(({ text }) => text === '2 cases fell').click()")
    page.wait_for(f"{_STATUS} === '2 of 7 cases'")
    assert _names(page) == ["Refund total", "Return label"]


def test_the_list_shows_what_it_is_ordered_by(page: Page, tmp_path: Path) -> None:
    path = write_page(samples.regressed(), tmp_path)
    shown = """JSON.stringify([...document.querySelectorAll('#list .case')].slice(0, 2).map((line) =>
      [line.querySelector('.name').textContent, line.querySelector('.tries').textContent]))"""
    for order, rows in {
        "change": [["Refund total", "0.94 → 0.05"], ["Return label", "0.90 → 0.62"]],
        "-change": [["Opening hours", "0.00 → 1.00"], ["Shipping to Norway", "1.00 → 1.00"]],
        "-time": [["Return label", "500 ms"], ["Refund total", "250 ms"]],
    }.items():
        page.open(path, f"#kind=all&sort={order}")
        assert json.loads(page.run(shown)) == rows, order


def test_the_cases_of_several_runs_are_searched_and_sorted(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "runs.html"
    named = (("a|<b>", samples.green()), ("b", samples.regressed()), ("c", samples.hostile()))
    runs = [(name, sample.results) for name, sample in named]
    path.write_text("".join(render_runs(runs)), encoding="utf-8", errors="replace")
    page.open(path)
    names = "#answers tbody tr:not([hidden]) th"
    before = _texts(page, names)
    page.run("document.querySelectorAll('#answers thead button')[1].click()")
    page.run("document.querySelectorAll('#answers thead button')[1].click()")
    changes = page.run(
        "[...document.querySelectorAll('#answers tbody tr')].map(({ cells }) => cells[1].dataset.value)"
    )
    known = [float(change) for change in changes if change]
    assert known == sorted(known, reverse=True)
    assert sorted(_texts(page, names)) == sorted(before)
    page.run("document.getElementById('search').value = 'norway'")
    page.run("document.getElementById('search').dispatchEvent(new Event('input'))")
    assert _texts(page, names) == ["Shipping to Norway"]
    with _screen(page, 360, mobile=True):
        page.run(_OPEN_EVERYTHING)
        assert page.run("document.documentElement.scrollWidth") <= 360
    assert page.complaints == []
    assert _seen(page)[0] <= _OURS
    assert page.requests == [path.as_uri()]


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
    headings = _texts(page, "h1, h2, h3, h4", "localName")
    assert headings[0] == "h1"
    assert headings.count("h1") == 1
