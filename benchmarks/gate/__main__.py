"""``python -m benchmarks.gate``: the key cells of the gate's tables from the program's own functions, as Markdown.

A cell is a world and a change. Its rate must be within two Monte-Carlo errors of the published one.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import warnings
import zlib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from benchmarks.gate import program
from benchmarks.gate.worlds import World, attempt, metrics

#: At most so many harmless pull requests are red, in per cent.
LIMIT = 2.5
_SEED = 1
_QUICK = 60
_TASK = 25


@dataclass(frozen=True)
class Cell:
    """A rate that the documentation publishes.

    Attributes:
        table: its letter.
        world: how cases, days and sessions vary.
        change: what the pull request does.
        published: per cent that are not green.
        of: pull requests that the published rate is made from.
        by: ``beside``: the base runs beside the change; ``alone``: it cannot run; ``files``: nothing runs;
            ``merged``: nothing runs, and then the base beside the change in three shards.
        replications: simulated pull requests.
    """

    table: str
    world: World
    change: str
    published: float
    of: int
    by: str = "beside"
    replications: int = 300

    @property
    def name(self) -> str:
        """World and change in words."""
        return f"{self.world.name()} · {self.change} · {self.by}"


CELLS = (
    Cell("A", World(), "none", 0.1, 4000, replications=1000),
    Cell("A", World(), "mean 5", 56.0, 500),
    Cell("A", World(), "mean 10", 98.0, 300),
    Cell("A", World(), "one 0", 100.0, 300),
    Cell("A", World(k=1), "mean 10", 72.7, 300),
    Cell("A", World(k=1), "one 0", 100.0, 300),
    Cell("A", World(k=5), "mean 5", 73.8, 500),
    Cell("A", World(R=1), "mean 5", 42.0, 500),
    Cell("A", World(R=3), "one 0", 100.0, 300),
    Cell("A", World(R=5, k=1), "one 0", 99.7, 300),
    Cell("A", World(R=1, k=1), "one 0", 99.7, 300),
    Cell("A", World(N=20), "mean 10", 74.7, 300),
    Cell("A", World(mix="flaky"), "mean 5", 28.0, 500),
    Cell("A", World(caching="session"), "one 0", 100.0, 300),
    Cell("B", World(N=5), "mean 20", 48.3, 300),
    Cell("B", World(N=1), "one 0", 100.0, 300),
    Cell("D", World(), "mean 10", 95.0, 200, by="alone"),
    Cell("D", World(drift=0.5), "none", 1.4, 1500, by="alone", replications=500),
    Cell("E", World(), "mean 10", 82.5, 200, by="files"),
    Cell("E", World(), "one 0", 100.0, 200, by="files"),
    Cell("E", World(lost=0.04), "none", 2.4, 1500, by="files", replications=500),
    Cell("M", World(), "none", 0.2, 4000, by="merged", replications=1000),
    Cell("M", World(drift=0.5), "none", 0.5, 1500, by="merged", replications=500),
    Cell("M", World(session=0.5), "none", 0.3, 1500, by="merged", replications=500),
    Cell("M", World(), "mean 5", 60.0, 500, by="merged"),
    Cell("M", World(), "mean 10", 98.0, 300, by="merged"),
    Cell("M", World(), "one 0", 100.0, 300, by="merged"),
    Cell("I", World(kind="latency", slack=0.0953), "slow .3", 99.7, 300),
    Cell("I", World(kind="latency", slack=0.0953, step=-0.7), "none", 0.0, 1500),
)


def rate(cell: Cell, first: int, count: int) -> tuple[int, int, int]:
    """Simulate some pull requests; return their number, those that are not green, and further calls."""
    warnings.simplefilter("ignore", RuntimeWarning)
    found = calls = 0
    for number in range(first, first + count):
        rng = np.random.default_rng([_SEED, zlib.crc32(repr((cell.world.name(), cell.change, number)).encode())])
        _, _, baseline, run, again = attempt(cell.world, cell.change, rng)
        asked = None if cell.by == "files" else again
        if cell.by == "merged":
            outcome = program.merged_gate(run, baseline, metrics(cell.world), again, seed=number)
        else:
            outcome = program.gate(
                run, baseline, metrics(cell.world), asked, has_base=cell.by == "beside", seed=number
            )
        found += outcome.state in {"proven", "unproven"}
        calls += outcome.calls
    return count, found, calls


def is_missed(cell: Cell, found: int, number: int) -> bool:
    """Return whether a rate differs from the published one significantly: by two errors of both together."""
    share, expected = found / number, cell.published / 100
    # A cell of 0 or 100 per cent has an error, too.
    middle = (found + expected * cell.of + 1) / (number + cell.of + 2)
    error = math.sqrt(middle * (1 - middle) * (1 / number + 1 / cell.of))
    return abs(share - expected) > max(2 * error, 1 / number)


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate, print the cells, and return 1 if one is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{_QUICK} pull requests a cell")
    parser.add_argument("--table", nargs="+", metavar="LETTER", help="only these tables")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="default: all cores")
    options = parser.parse_args(arguments)
    cells = [cell for cell in CELLS if not options.table or cell.table in options.table]
    print("| table | world · change · by | published | here | further runs |\n|---|---|--:|--:|--:|")
    missed = 0
    with ProcessPoolExecutor(options.processes) as pool:
        for cell in cells:
            number = min(_QUICK, cell.replications) if options.quick else cell.replications
            parts = [(first, min(_TASK, number - first)) for first in range(0, number, _TASK)]
            tally = [pool.submit(rate, cell, *part) for part in parts]
            _, found, calls = (sum(column) for column in zip(*(item.result() for item in tally), strict=True))
            error = 100 * math.sqrt(found / number * (1 - found / number) / number)
            is_bad = is_missed(cell, found, number)
            missed += is_bad
            runs = calls / number / (cell.world.N * cell.world.k)
            rates = f"{cell.published:g} | {100 * found / number:.1f} ± {error:.1f}"
            print(f"| {cell.table} | {cell.name} | {rates}{' **missed**' * is_bad} | {runs:.2f} |", flush=True)
    print(f"\n{len(cells)} cells, {missed} missed.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
