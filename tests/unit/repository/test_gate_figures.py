"""The figures about the gate in the documentation are those of its benchmark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from tests.support import ROOT

_RESULTS = (ROOT / "benchmarks" / "gate" / "RESULTS.md").read_text(encoding="utf-8")
_GATE = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")
# ``64.2 ± 2.0 % (60.0)``: measured, its standard error, and expected.
_FIGURE = re.compile(r"(?P<measured>[\d.]+) ± (?P<error>[\d.]+)(?: %)?(?: \((?P<expected>[\d.]+)\))?")
_STAGED = re.compile(r"^staged$|, staged|staged, ")

Row = Mapping[str, re.Match[str]]


def table(letter: str) -> Mapping[str, Row]:
    """The rows of a table of the results, by the name of the cell."""
    (text,) = re.findall(rf"^## {letter}\. .*?(?=^## |\Z)", _RESULTS, re.MULTILINE | re.DOTALL)
    lines = [[part.strip() for part in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    names = lines[0][1:]
    return {
        cells[0]: {name: found for name, cell in zip(names, cells[1:], strict=True) if (found := _FIGURE.match(cell))}
        for cells in lines[2:]
    }


def rounded(text: str, digits: str = "1") -> str:
    return str(Decimal(text).quantize(Decimal(digits), ROUND_HALF_EVEN))


def found(cell: str, which: str, letter: str = "B") -> str:
    return f"{rounded(table(letter)[cell]['found'][which])} %"


def highest(cells: Iterator[re.Match[str] | None], which: str) -> str:
    """The highest false alarm of some cells."""
    return str(max(Decimal(cell[which]) for cell in cells if cell is not None and cell[which] is not None))


def harmless() -> str:
    return f"{table('A')['usual']['false alarm']['expected']} %"


def while_a_provider_changes() -> str:
    steps = (row["false alarm"] for cell, row in table("A").items() if "step" in cell)
    return f"at most {highest(steps, 'expected')} %"


def whole_first_run() -> str:
    """The highest false alarm of whole first runs, in the cells that were simulated staged too."""
    usual = (_STAGED.sub("", cell) or "usual" for cell, row in table("M").items() if "false alarm" in row)
    rows = table("A")
    return f"at most {highest((rows[cell]['false alarm'] for cell in usual if cell in rows), 'expected')} %"


def staged_first_run() -> str:
    rows = (row.get("false alarm") for row in table("M").values())
    return f"at most {highest(rows, 'measured')} %"


def compared(cell: str, staged: str, digits: str = "1") -> str:
    """A drop that is found: by a whole first run, and by a staged one."""
    whole, once = (
        rounded(table(letter)[name]["found"]["measured"], digits) for letter, name in (("B", cell), ("M", staged))
    )
    return f"{whole} % | {once} %"


@pytest.mark.parametrize(
    ("row", "figures"),
    [
        ("harmless", harmless()),
        ("harmless, while a provider changes on the same day", while_a_provider_changes()),
        ("the mean drops by 5 points", found("mean 5", "expected")),
        ("the mean drops by 10 points", found("mean 10", "expected")),
        ("one case that always passed always fails", found("one to 0", "expected")),
        ("the same with one run in the pool", found("runs 1, one to 0", "expected")),
        ("one case that always passed fails every second time", found("one to 0.5", "expected")),
        ("harmless: blocked, over 23 kinds of suites and days", f"{whole_first_run()} | {staged_first_run()}"),
        ("the mean drops by 5 points: found", compared("mean 5", "staged, mean 5")),
        ("the same with three runs in the pool", compared("runs 3, mean 5", "runs 3, staged, mean 5")),
        ("the same with five iterations", compared("iterations 5, mean 5", "iterations 5, staged, mean 5")),
        ("the mean drops by 10 points: found", compared("mean 10", "staged, mean 10")),
        (
            "the mean of 20 cases drops by 10 points: found",
            compared("cases 20, mean 10", "cases 20, staged, mean 10"),
        ),
        ("one case that always passed fails every second time: found", compared("one to 0.5", "staged, one to 0.5")),
    ],
)
def test_a_row_of_the_page_has_the_figures_of_the_benchmark(row: str, figures: str) -> None:
    assert f"| {row} | {figures} |" in _GATE


def test_the_sentences_of_the_page_have_the_figures_of_the_benchmark() -> None:
    iterations, cases = found("iterations 5, mean 5", "expected"), found("cases 200, mean 5", "expected")
    least, most = found("cases 10, mean 10", "expected"), found("120 calls, cases 10, mean 10", "expected", "H")
    text = " ".join(_GATE.split())
    assert (
        f"With five iterations, {iterations} of the drops by 5 points are found, and with 200 cases {cases}." in text
    )
    assert (
        f"In suites of ten cases, {least.removesuffix(' %')} to {most} of the drops by 10 points are found." in text
    )


def test_the_figures_of_chains_of_merges_are_those_of_the_benchmark() -> None:
    rows = table("O")

    def blocked(staged: bool) -> str:
        shares = [Decimal(row["false alarm"]["measured"]) for cell, row in rows.items() if is_clean(cell, staged)]
        return f"{min(shares)} to {max(shares)} %"

    def is_clean(cell: str, staged: bool) -> bool:
        return "gain" not in cell and ("staged" in cell) is staged

    def undone(staged: bool) -> str:
        shares = [
            Decimal(row["found"]["measured"])
            for cell, row in rows.items()
            if "gain 10" in cell and ("staged" in cell) is staged
        ]
        return f"{rounded(str(sum(shares) / len(shares)))} %"

    text = " ".join(_GATE.split())
    assert f"{blocked(True)} of the harmless staged pull requests are blocked, and {blocked(False)} of" in text
    assert f"gain of 10 points, {undone(True)} are found, and {undone(False)} by whole first runs" in text


def test_the_first_page_repeats_the_page_of_the_gate() -> None:
    said = f"[{harmless()}, {while_a_provider_changes()} while a provider changes]"
    assert f"{said}(docs/gate.md#how-often-the-gate-is-right)" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_each_kind_of_suite_and_day_of_the_page_was_simulated() -> None:
    assert sum("false alarm" in row for row in table("M").values()) == 23
