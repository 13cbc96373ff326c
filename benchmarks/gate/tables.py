"""The figures as Markdown."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.gate.cells import Table
from benchmarks.gate.tally import Figure, Tally

# Measures that are no shares of pull requests: runs of the suite, points, and scores.
_AMOUNTS = {"first run", "extra", "base extra", "runs per attempt", "runs per merge", "pool", "lost", "bound"}


def table_text(table: Table, tallies: Mapping[str, tuple[int, Tally]]) -> str:
    """Return the simulated rows of a table: each figure with its standard error, and in brackets what is expected.

    Measures that are 0 everywhere are left out if nothing is expected of them.
    """
    rows = [row for row in table.rows if row.name in tallies]
    found = dict.fromkeys(name for row in rows for name in tallies[row.name][1].figures)
    shown = {name for row in rows for name in row.expected} | {
        name for row in rows for name in found if tallies[row.name][1][name].total
    }
    names = [name for name in found if name in shown]
    heads = ["cell", "replications", *names]
    lines = [heads, [":--", *["--:"] * (len(heads) - 1)]]
    for row in rows:
        made, tally = tallies[row.name]
        figures = [_figure(name, tally[name], row.expected.get(name)) for name in names]
        lines.append([row.name, f"{made:,}", *figures])
    table_lines = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"## {table.key}. {table.title}\n\n{table_lines}\n"


def _figure(name: str, figure: Figure, expected: float | None) -> str:
    if not figure.count:
        return ""
    if name in _AMOUNTS:
        text = f"{figure.mean:.2f} ± {figure.error:.2f}"
        return text if expected is None else f"{text} ({expected:.2f})"
    text = f"{100 * figure.mean:.1f} ± {100 * figure.error:.1f} %"
    return text if expected is None else f"{text} ({100 * expected:.1f})"
