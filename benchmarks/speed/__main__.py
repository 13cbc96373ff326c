"""``python -m benchmarks.speed``: compares the speed of agenteval and other programs in one run, as Markdown."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.speed.goals import cpu_growth, goals
from benchmarks.speed.measure import Cost, ProgramError, median_cost, run
from benchmarks.speed.outcome import check_outcome, read_outcome
from benchmarks.speed.peers import PEERS, Environment, install
from benchmarks.speed.programs import BARE, LIMIT_S, Program, environment, programs
from benchmarks.speed.server import serving
from benchmarks.speed.tables import cost_table, goal_table, ratio_table, reasons
from benchmarks.speed.workloads import USUAL, W1_HUGE, Workload, write_inputs

_RESULTS = Path(__file__).parents[1] / "RESULTS.md"
_ROOT = Path(__file__).parents[2]

# Programs that take longer than this (wall time in seconds) run once.
_LONG_S = 60

_Key = tuple[str, str]


def main() -> int:
    """Install, measure and print; return 0 whether or not the goals are met, because the tables show that."""
    options = _parser().parse_args()
    started = time.monotonic()
    environments = {peer: _installed(peer) for peer in options.peers}
    measured = programs(options.agenteval, environments)
    workloads = [
        w for w in (*USUAL, *([W1_HUGE] if options.full else [])) if not options.only or w.key in options.only
    ]
    costs: dict[_Key, list[Cost]] = {}
    problems: dict[_Key, str] = {}
    # An interrupted run prints its results so far, also in the background, where shells ignore the signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with serving("agent") as url, contextlib.suppress(KeyboardInterrupt):
        for workload in workloads:
            for key, found in _measured(workload, measured, options.runs or workload.runs, url):
                if isinstance(found, ProgramError):
                    problems[key] = str(found)
                else:
                    costs.setdefault(key, []).append(found)
    medians = {key: median_cost(taken) for key, taken in costs.items() if key not in problems}
    names = [program.name for program in measured]
    missing = [program.name for program in measured if program.missing]
    text = "\n\n".join(
        [
            f"# Speed\n\n{_machine(options.agenteval, environments, options.runs)}",
            cost_table(names, workloads, medians, problems, missing),
            ratio_table(names, workloads, medians),
            goal_table(goals(medians)),
            *([f"Not pursued any more:\n\n{given_up}"] if (given_up := reasons(goals(medians))) else []),
            *_notices(measured, medians, problems, time.monotonic() - started),
        ]
    )
    print(text)
    if options.write:
        # `benchmarks.shards` writes the rest.
        _, mark, shards = _RESULTS.read_text(encoding="utf-8").partition("\n## Shards\n")
        _RESULTS.write_text(f"{text}\n{mark}{shards}", encoding="utf-8")
    return 0


def _measured(
    workload: Workload, measured: Sequence[Program], runs: int, url: str
) -> Iterator[tuple[_Key, Cost | ProgramError]]:
    """Return the cost or the problem of each run; the programs take turns, so that other load affects all alike."""
    remaining = [program for program in measured if not program.missing and program.does(workload)]
    # The other programs must have the same scores.
    remaining.sort(key=lambda program: program.name != BARE)
    reference: Mapping[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="agenteval-speed-") as name:
        inputs = Path(name)
        write_inputs(workload, inputs, url)
        for number in range(1, runs + 1):
            for program in tuple(remaining):
                key = (workload.key, program.name)
                try:
                    cost, means = _once(workload, program, inputs, url, reference)
                except ProgramError as error:
                    remaining.remove(program)
                    yield key, error
                    continue
                if program.name == BARE:
                    reference = means
                if cost.wall_s > _LONG_S:
                    remaining.remove(program)
                print(f"{workload.title}, {program.name}, run {number}: {cost}", file=sys.stderr, flush=True)
                yield key, cost


def _once(
    workload: Workload, program: Program, inputs: Path, url: str, reference: Mapping[str, float]
) -> tuple[Cost, Mapping[str, float]]:
    """Run once in a new folder; return the cost and the mean scores."""
    with tempfile.TemporaryDirectory(prefix="agenteval-speed-") as name:
        folder = Path(name)
        for file in inputs.iterdir():
            os.link(file, folder / file.name)
        variables = environment(folder)
        cost = run(program.command(workload, url), folder=folder, environment=variables, limit_s=LIMIT_S)
        if workload.kind == "version":
            return cost, {}
        outcome = read_outcome(folder, program.leaves, variables)
        check_outcome(outcome, workload, reference)
        return cost, outcome.means


def _installed(peer: str) -> Environment:
    print(f"installing {peer}", file=sys.stderr, flush=True)
    return install(peer)


def _machine(agenteval: Path, environments: Mapping[str, Environment], runs: int | None) -> str:
    version = subprocess.run([agenteval, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    versions = [version, *(found.version for found in environments.values() if found.version)]
    often = f"{runs} {'run' if runs == 1 else 'runs'}" if runs else "five runs, three of 10,000 cases and more"
    when = datetime.datetime.now(datetime.UTC).date().isoformat()
    busy = os.getloadavg()[0]
    return (
        f"{when}, {_cpu_model()}, {os.cpu_count()} cores, load {busy:.1f} at the end, {platform.system()}, "
        f"Python {platform.python_version()}. {'; '.join(versions)}.\n\n"
        f"Medians of {often}; programs that take more than {_LONG_S} s run once. The programs take turns. CPU is "
        "user and system time of a process and its children, with start-up; the peak is that of the largest process."
    )


def _cpu_model() -> str:
    with contextlib.suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8") as file:
        for line in file:
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _notices(
    measured: Sequence[Program], medians: Mapping[_Key, Cost], problems: Mapping[_Key, str], seconds: float
) -> Iterator[str]:
    for name, growth in cpu_growth(medians).items():
        yield f"CPU per case at 100,000 cases, as a ratio to 10,000, {name}: {growth:.2f}."
    missing = [f"{program.name}: {program.missing}" for program in measured if program.missing]
    failed = [f"{name}, {key}: {problem}" for (key, name), problem in problems.items()]
    if missing or failed:
        yield "\n".join(f"* {line}" for line in (*missing, *failed))
    yield f"The run took {seconds / 60:.0f} minutes."


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    beside = Path(sys.executable).parent / "agenteval"
    parser.add_argument("--runs", type=int, help="of each program (five; three of 10,000 cases and more)")
    parser.add_argument("--full", action="store_true", help="also agenteval alone with 100,000 cases")
    parser.add_argument("--only", nargs="+", metavar="KEY", help=f"of {', '.join(w.key for w in (*USUAL, W1_HUGE))}")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=PEERS, help="which of them (all)")
    parser.add_argument("--agenteval", type=Path, default=beside, help="the program under test (%(default)s)")
    parser.add_argument("--write", action="store_true", help=f"also into {_RESULTS.relative_to(_ROOT)}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
