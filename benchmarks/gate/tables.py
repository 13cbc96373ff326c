"""The results of the benchmark as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from benchmarks.gate.figures import expected_power
from benchmarks.gate.grids import CHANGES
from benchmarks.gate.simulate import Cell, Tally

_Design = tuple[str, ...]


def cell_table(tallies: Mapping[Cell, Tally]) -> str:
    """Return one line per world, size, runs, noise and policy, with the share of blocked pull requests per change."""
    designs: dict[_Design, dict[str, tuple[Cell, Tally]]] = {}
    for cell, tally in tallies.items():
        designs.setdefault(_design(cell), {})[cell.change] = cell, tally
    heads = ["world", "N", "k", "R", "noise", "confirm", *("false alarm" if c == "none" else c for c in CHANGES)]
    rows = [[*design, *_results(found)] for design, found in designs.items()]
    return _markdown([*heads, "coverage, least", "extra runs, clean"], rows)


def naive_table(naive: Mapping[Cell, Mapping[str, float]], tallies: Mapping[Cell, Tally]) -> str:
    """Return one line per gate with means over all designs; agenteval's lines are by number of baseline runs."""
    names = list(dict.fromkeys(name for rates in naive.values() for name in rates))
    rows = [_summary(name, {cell: rates[name] for cell, rates in naive.items()}) for name in names]
    ours = {
        cell: tally.regressed_rate
        for cell, tally in tallies.items()
        if cell.noise == "independent" and cell.confirm == "rerun"
    }
    for runs in sorted({cell.runs for cell in ours}):
        rates = {cell: rate for cell, rate in ours.items() if cell.runs == runs}
        rows.append(_summary(f"agenteval, R = {runs}", rates))
    return _markdown(["gate", "false alarm, mean", "false alarm, most", *CHANGES[1:]], rows)


def _summary(name: str, rates: Mapping[Cell, float]) -> list[str]:
    null = [rate for cell, rate in rates.items() if cell.change == "none"]
    powers = [[rate for cell, rate in rates.items() if cell.change == change] for change in CHANGES[1:]]
    return [name, _mean(null), f"{max(null):.1%}" if null else "", *(_mean(power) for power in powers)]


def _design(cell: Cell) -> _Design:
    return cell.world, str(cell.cases), str(cell.iterations), str(cell.runs), cell.noise, cell.confirm


def _results(found: Mapping[str, tuple[Cell, Tally]]) -> list[str]:
    rates = [_rate(*found[change]) if change in found else "" for change in CHANGES]
    coverage = min(tally.coverage for _, tally in found.values())
    clean = f"{found['none'][1].extra_runs:+.0%}" if "none" in found else ""
    return [*rates, f"{coverage:.1%}", clean]


def _rate(cell: Cell, tally: Tally) -> str:
    if cell.change == "none":
        return f"{tally.regressed_rate:.1%}"
    expected = expected_power(cell)
    figure = "" if expected is None else f" ({100 * expected:.0f})"
    return f"{100 * tally.regressed_rate:.0f}{figure}"


def _mean(rates: Sequence[float]) -> str:
    return f"{sum(rates) / len(rates):.1%}" if rates else ""


def _markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
