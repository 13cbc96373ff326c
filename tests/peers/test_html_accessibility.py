"""What axe-core finds in the HTML report, and whether it can be used with the keyboard alone.

Needs Chromium on the path, or its path in ``AGENTEVAL_CHROMIUM``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.peers import chromium
from tests.peers.chromium import Page
from tests.unit.report import samples
from tests.unit.report.samples import Sample, write_page
from tests.unit.report.scenarios import SCENARIOS

_AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(chromium.program() is None, reason="needs Chromium"),
    pytest.mark.skipif(not _AXE.is_file(), reason="needs axe-core: npm ci --prefix tests/peers"),
]

_PAGES: Mapping[str, Callable[[], Sample]] = {
    **samples.SAMPLES,
    **{name: lambda make=make: make().sample for name, make in SCENARIOS.items() if name != "5000-cases"},  # type: ignore[misc]
}
# What WCAG 2.2 asks for at level AA, and what axe knows to be good practice.
_CHECK = """axe.run(document, {resultTypes: ['violations'], runOnly:
  ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})
  .then(({violations, passes}) => JSON.stringify({passes: passes.length, violations: violations.flatMap((rule) =>
    rule.nodes.map((node) => `${rule.impact} ${rule.id}: ${node.html} ${node.failureSummary}`))}))"""
_OPEN = """(async () => {
  for (const element of document.querySelectorAll('details')) element.open = true;
  await new Promise((done) => { setTimeout(done); });
})()"""
# The other sections are looked at together: each alone would take five times as long.
_OTHER_SECTIONS = """(() => {
  document.getElementById('cases').hidden = true;
  document.body.classList.remove('split');
  for (const section of document.querySelectorAll('.panel')) section.hidden = false;
})()"""
_CONTROLS = """window.controls = [
  ...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')
].filter((element) => element.checkVisibility() && !element.disabled)"""
_FOCUS = """(() => {
  const element = document.activeElement;
  const style = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  return JSON.stringify({name: element.localName, place: window.controls.indexOf(element),
    seen: box.width > 0 && box.bottom > 0 && box.top < innerHeight,
    marked: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0});
})()"""


def _violations(page: Page) -> list[str]:
    page.run(_AXE.read_text(encoding="utf-8") + "; undefined")
    found: dict[str, Any] = json.loads(page.run(_CHECK))
    assert found["passes"] > 10
    violations: list[str] = found["violations"]
    return violations


# Colours do not depend on the width, and the pages have much in common.
@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [(name, *((390, "dark"), (900, "light"))[place % 2]) for place, name in enumerate(_PAGES)],
)
def test_axe_finds_nothing(page: Page, tmp_path: Path, name: str, width: int, scheme: str) -> None:
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
    try:
        page.open(write_page(_PAGES[name](), tmp_path))
        page.run(_OPEN)
        assert _violations(page) == []
        page.run(_OTHER_SECTIONS)
        assert _violations(page) == []
        assert page.complaints == []
        assert len(page.requests) == 1
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")
        page.call("Emulation.setEmulatedMedia", features=[])


def test_axe_finds_nothing_in_the_help_about_keys(page: Page, tmp_path: Path) -> None:
    page.open(write_page(samples.green(), tmp_path))
    page.press("?", 191, "?")
    assert page.run("document.getElementById('keys').checkVisibility()")
    assert _violations(page) == []


def test_axe_finds_what_is_wrong(page: Page, tmp_path: Path) -> None:
    page.open(write_page(samples.green(), tmp_path))
    page.run(
        "document.querySelector('input[type=search]').closest('label').replaceWith(document.createElement('input'))"
    )
    page.run("document.documentElement.removeAttribute('lang')")
    found = {line.split(":")[0] for line in _violations(page)}
    assert {"critical label", "serious html-has-lang"} <= found


def test_the_focus_can_always_be_seen_and_reaches_everything(page: Page, tmp_path: Path) -> None:
    page.open(write_page(samples.regressed(), tmp_path))
    page.run(_OPEN)
    controls = page.run(f"({_CONTROLS}).length")
    reached = []
    # Chromium stops at what can be scrolled as well.
    for _ in range(2 * controls):
        page.press("Tab", 9)
        at = json.loads(page.run(_FOCUS))
        if at["name"] == "body":
            break
        reached.append(at)
    assert [at["place"] for at in reached if at["place"] >= 0] == list(range(controls))
    assert [at for at in reached if not (at["seen"] and at["marked"])] == []


def test_filters_can_be_set_with_the_keyboard(page: Page, tmp_path: Path) -> None:
    page.open(write_page(samples.regressed(), tmp_path))
    _tab_to(page, "document.activeElement.type === 'search'")
    for letter in "fax":
        page.press(letter, ord(letter.upper()), letter)
    status = "document.getElementById('count').textContent"
    page.wait_for(f"{status} === '1 of 7 cases'")
    for _ in "fax":
        page.press("Backspace", 8)
    page.wait_for(f"{status} === '3 of 7 cases'")
    _tab_to(page, "document.activeElement.innerText === '○ known failure 1'")
    page.press("Enter", 13, "\r")
    page.wait_for(f"{status} === '1 of 7 cases'")
    assert page.run("location.hash") == "#kind=known"
    page.press("Enter", 13, "\r")
    page.wait_for(f"{status} === '3 of 7 cases'")
    page.run("document.getElementById('list').focus()")
    page.press("Escape", 27)
    assert page.run("location.hash") == ""
    assert page.complaints == []


def _tab_to(page: Page, condition: str) -> None:
    for _ in range(40):
        page.press("Tab", 9)
        if page.run(condition):
            return
    raise AssertionError(f"not reached with Tab: {condition}")
