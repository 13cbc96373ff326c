"""The figures about the gate in the documentation are those of its benchmark."""

from __future__ import annotations

import re

import pytest
from benchmarks.gate.__main__ import CELLS
from tests.support import ROOT

_PAGE = (ROOT / "docs" / "gate-arithmetic.md").read_text(encoding="utf-8")
_README = (ROOT / "README.md").read_text(encoding="utf-8")
_ROWS = {
    "harmless": "standard · none · beside",
    "one case that always passed always fails": "standard · one 0 · beside",
    "the same with one iteration and five base runs": "k=1, R=5 · one 0 · beside",
    "the same, and answers are cached within a session": "caching=session · one 0 · beside",
    "the mean drops by 0.10": "standard · mean 10 · beside",
    "the mean drops by 0.05": "standard · mean 5 · beside",
    "the mean drops by 0.05 in a flaky suite": "mix=flaky · mean 5 · beside",
    "the mean drops by 0.10 with one iteration": "k=1 · mean 10 · beside",
    "the mean drops by 0.10 in 20 cases": "N=20 · mean 10 · beside",
    "the mean drops by 0.20 in 5 cases": "N=5 · mean 20 · beside",
    "latency rises by 30 %, 10 % allowed": "kind=latency, slack=0.0953 · slow .3 · beside",
    "from files alone, the mean drops by 0.10": "standard · mean 10 · files",
    "without the base, the mean drops by 0.10": "standard · mean 10 · alone",
}


@pytest.mark.parametrize(("row", "cell"), _ROWS.items())
def test_a_rate_is_that_of_its_cell(row: str, cell: str) -> None:
    (figure,) = re.findall(rf"^\| {re.escape(row)} \| ([\d.]+)(?: ± [\d.]+)? \|$", _PAGE, re.MULTILINE)
    published = {item.name: item.published for item in CELLS}
    assert float(figure) == published[cell]


def test_the_readme_has_the_rates_of_harmless_changes() -> None:
    (usual, most) = re.findall(r"\[([\d.]+) % of harmless changes, and for ([\d.]+) % in", _README)[0]
    assert f"| harmless | {usual} " in _PAGE
    assert re.search(rf"^\| harmless, largest of \d+ worlds .*\| {most} \|$", _PAGE, re.MULTILINE)
