"""``python -m benchmarks.gate``: false alarms, power and cost of the gate in simulated pull requests, as Markdown."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from benchmarks.gate.cells import Row, read_tables, simulate
from benchmarks.gate.checks import misses
from benchmarks.gate.tables import table_text
from benchmarks.gate.tally import Tally

_QUICK = 60
_TABLES = tuple("ABCDEFGHIJKLMNO")
# Replications that are simulated together.
_TASK = 25


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate and print the figures; return 1 if one is missed."""
    parser = _parser()
    options = parser.parse_args(arguments)
    most = options.replications or (_QUICK if options.quick else sys.maxsize)
    tables = [table for table in read_tables() if not options.table or table.key in options.table]
    rows = {
        (table.key, row.name): row
        for table in tables
        for row in table.rows
        if (row.is_quick or not options.quick) and (not options.cell or row.name in options.cell)
    }
    if unknown := set(options.cell or ()) - {name for _, name in rows}:
        parser.error(f"no such cell in these tables: {', '.join(sorted(unknown))}")
    started = time.monotonic()
    tallies = _simulate_all(rows, most, options.processes)
    missed: list[str] = []
    for table in tables:
        found = {
            name: (min(most, rows[key, name].replications), tallies[key, name])
            for key, name in rows
            if key == table.key
        }
        if found:
            print(table_text(table, found))
            missed += misses(table, found)
    print(f"{len(rows)} cells in {time.monotonic() - started:.0f} s, {len(missed)} figures missed.")
    print("\n".join(missed), file=sys.stderr)
    return 1 if missed else 0


def _simulate_all(rows: Mapping[tuple[str, str], Row], most: int, processes: int) -> Mapping[tuple[str, str], Tally]:
    tallies = dict.fromkeys(rows, Tally())
    with ProcessPoolExecutor(processes) as pool:
        running = {
            pool.submit(simulate, row, first, count): key
            for key, row in rows.items()
            for first, count in _parts(min(most, row.replications))
        }
        for done in as_completed(running):
            tallies[running[done]] += done.result()
    return tallies


def _parts(replications: int) -> Iterator[tuple[int, int]]:
    for first in range(0, replications, _TASK):
        yield first, min(_TASK, replications - first)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"about 25 cells, {_QUICK} replications")
    parser.add_argument("--table", nargs="+", choices=_TABLES, metavar="LETTER", help="only these tables, A to O")
    parser.add_argument("--cell", nargs="+", metavar="NAME", help="only these cells, as named in the tables")
    parser.add_argument("--replications", type=int, metavar="N", help="at most so many per cell")
    parser.add_argument("--processes", type=int, metavar="N", default=os.cpu_count(), help="default: all cores")
    return parser


if __name__ == "__main__":
    sys.exit(main())
