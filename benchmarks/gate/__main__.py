"""``python -m benchmarks.gate``: error rates, power, coverage and cost of the gate, as Markdown."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed

from benchmarks.gate.figures import problems
from benchmarks.gate.grids import full_grid, naive_grid, quick_grid
from benchmarks.gate.naive import naive_alarms
from benchmarks.gate.simulate import Cell, Tally, simulate
from benchmarks.gate.tables import cell_table, naive_table

_FULL, _QUICK = 1000, 200
# Number of cases that are simulated together.
_TASK = 20_000


def main() -> int:
    """Simulate and print the results; return 1 if a figure is missed."""
    options = _parser().parse_args()
    cells = quick_grid() if options.quick else full_grid()
    replications = options.replications or (_QUICK if options.quick else _FULL)
    started = time.monotonic()
    tallies = _simulate_all(cells, replications, options.processes)
    print(f"# The gate, simulated\n\n{replications} replications per cell.\n")
    print(cell_table(tallies))
    if not options.no_naive:
        print("\n# Gates without statistics of a pool\n")
        naive = {cell: naive_alarms(cell, replications) for cell in naive_grid(cells)}
        print(naive_table(naive, tallies))
    missed = [f"{cell}: {problem}" for cell, tally in tallies.items() for problem in problems(cell, tally)]
    print(f"\n{len(cells)} cells in {time.monotonic() - started:.0f} s, {len(missed)} figures missed.")
    print("\n".join(missed), file=sys.stderr)
    return 1 if missed else 0


def _simulate_all(cells: list[Cell], replications: int, processes: int) -> Mapping[Cell, Tally]:
    tallies = dict.fromkeys(cells, Tally())
    with ProcessPoolExecutor(processes) as pool:
        # Large cells come first, so that the processes end at about the same time.
        tasks = sorted(_tasks(cells, replications), key=lambda task: -task[0].cases)
        running = {pool.submit(simulate, *task): task[0] for task in tasks}
        for done in as_completed(running):
            tallies[running[done]] += done.result()
    return tallies


def _tasks(cells: list[Cell], replications: int) -> Iterator[tuple[Cell, int, int]]:
    for cell in cells:
        size = max(1, _TASK // cell.cases)
        for first in range(0, replications, size):
            yield cell, first, min(size, replications - first)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"a handful of cells, {_QUICK} replications")
    parser.add_argument("--replications", type=int, help=f"per cell (default {_FULL})")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="default: all cores")
    parser.add_argument("--no-naive", action="store_true", help="leave out the gates for comparison")
    return parser


if __name__ == "__main__":
    sys.exit(main())
