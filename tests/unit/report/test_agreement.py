"""In every golden comment and summary, and in the results behind them, words and figures agree."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import pytest
from tests.unit.compare.agreement import Figures, check
from tests.unit.report.samples import GOLDEN
from tests.unit.report.scenarios import SCENARIOS

_ROW = re.compile(
    r"^\| (?P<name>[^|]+?) \| (?P<verdict>regressed|improved|unchanged|unproven) \| (?P<change>[-+±][\d.]+)"
    r"(?: \((?P<low>[-+][\d.]+) to (?P<high>[-+][\d.]+)\))? \| "
    r"(?:–|(?P<less>< )?(?P<p>[\d.e-]+), needed ≤ (?P<limit>[\d.e-]+)) \|",
    re.MULTILINE,
)
_HINT = re.compile(r"\. Smaller drops could hide: .*$")
# Two decimals of a score are a whole point.
_PRECISION = 0.51
# In the hostile ones, no word is agenteval's.
_TEXTS = sorted(
    path.name
    for start in ("comment", "summary")
    for path in GOLDEN.glob(f"{start}-*.md")
    if not path.stem.endswith("hostile")
)


def _shown(text: str) -> Iterator[tuple[str, Figures]]:
    """Yield the sentence and the figures of each mean in a report."""
    for row in _ROW.finditer(text):
        (sentence,) = set(re.findall(rf"^- {re.escape(row['name'])}: (.*)$", text, re.MULTILINE))
        yield (
            _HINT.sub("", sentence),
            Figures(
                verdict=row["verdict"],
                difference=100 * float(row["change"].replace("±", "")),
                interval=(100 * float(row["low"]), 100 * float(row["high"])) if row["low"] else None,
                p=float(row["p"]) / (2 if row["less"] else 1) if row["p"] else None,
                limit=float(row["limit"]) if row["limit"] else None,
                precision=_PRECISION,
            ),
        )


def _plain(text: str) -> str:
    return html.unescape(text).replace("\u200b", "")


@pytest.mark.parametrize("name", _TEXTS)
def test_of_every_report(name: str) -> None:
    text = _plain((GOLDEN / name).read_text(encoding="utf-8"))
    shown = list(_shown(text))
    for sentence, figures in shown:
        check(sentence, figures)
    heading = text.splitlines()[0]
    assert len(heading) <= 300
    # Only the beginning of a very long summary is kept.
    if shown and (found := re.search(r": failed: .+? fell by ([\d.]+) points?", heading)):
        assert any(abs(float(found[1]) + figures.difference) < _PRECISION for _, figures in shown)


def test_the_reports_have_figures_to_check() -> None:
    texts = [_plain((GOLDEN / name).read_text(encoding="utf-8")) for name in _TEXTS]
    verdicts = {figures.verdict for text in texts for _, figures in _shown(text)}
    assert verdicts >= {"regressed", "unchanged"}


@pytest.mark.parametrize("name", SCENARIOS)
def test_of_the_results(name: str) -> None:
    comparison = SCENARIOS[name]().sample.results.comparison
    for metric in comparison.metrics if comparison else ():
        check(metric.reason, Figures.of(metric))
