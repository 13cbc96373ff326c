"""Tests the reliability of runs: kills at random moments, and agents that are slow, fail, hang or return too much.

    python -m benchmarks.reliability kills [--kills 50]
    python -m benchmarks.reliability load [--cases 10000]

``kills``: a run is killed with SIGKILL at random moments and resumed until it ends. The final results must equal
those of an uninterrupted run, except for times and ids. Only iterations that were running when the process was killed
may be repeated.
``load``: three iterations of every case against an agent that fails in one of 20, hangs in one of 100, or returns
5 MB in one of 500; every case must have a result.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

_ITERATIONS = 3
_AT_ONCE = 8
_LOAD_AT_ONCE = 100
_KIB_PER_MIB = 1024
# Fields that differ between two runs of the same suite: times, durations and ids.
_OF_THE_RUN = frozenset(
    {"run_id", "started_at", "finished_at", "created_at", "duration_s", "duration_ms", "latency_ms", "resumed"}
)
_AGENT = """\
import time

def reply(request):
    with open("asked.log", "a") as log:
        log.write(f"{request['case']}\\n")
    number = int(request["case"])
    time.sleep(0.03)
    if number % 20 == 7:
        raise RuntimeError("no model")
    return "wrong" if number % 5 == 0 else request["input"]
"""
_TROUBLED_AGENT = """\
import random, time

def reply(request):
    with open("asked.log", "a") as log:
        log.write(f"{request['session']}\\n")
    draw = random.Random(request["session"])
    time.sleep(0.02 + 0.03 * draw.random())
    if draw.random() < 1 / 20:
        raise RuntimeError("no model")
    if draw.random() < 1 / 100:
        time.sleep(60)
    return "x" * 5_000_000 if draw.random() < 1 / 500 else request["input"]
"""


def main() -> None:
    """Run the chosen test, and print its result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, dest="what")
    kills = commands.add_parser("kills")
    kills.add_argument("--kills", type=int, default=50)
    load = commands.add_parser("load")
    load.add_argument("--cases", type=int, default=10_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.what == "kills":
            _kills(Path(folder), arguments.kills)
        else:
            _load(Path(folder), arguments.cases)


def _kills(folder: Path, wanted: int) -> None:
    _project(folder / "undisturbed", _AGENT, 60)
    began = time.monotonic()
    _command(folder / "undisturbed").wait()
    whole = time.monotonic() - began
    expected = _said(folder / "undisturbed")
    draw = random.Random(wanted)
    killed = runs = most_again = 0
    while killed < wanted:
        runs += 1
        directory = folder / f"run-{runs}"
        _project(directory, _AGENT, 60)
        kills = 0
        while not _ended(directory, whole * draw.random()):
            kills += 1
        if _said(directory) != expected:
            raise SystemExit(f"run {runs}, killed {kills} times, differs from the uninterrupted one")
        asked = Counter((directory / "asked.log").read_text(encoding="utf-8").splitlines())
        again = asked.total() - 60 * _ITERATIONS
        if again > kills * _AT_ONCE or len(asked) != 60 or min(asked.values()) < _ITERATIONS:
            raise SystemExit(f"run {runs}: {again} iterations were repeated after {kills} kills")
        killed += kills
        most_again = max(most_again, again)
    print("| kills | runs | same results | most asked again in a run | at once |\n|--:|--:|--:|--:|--:|")
    print(f"| {killed} | {runs} | {runs} | {most_again} | {_AT_ONCE} |")


def _ended(directory: Path, seconds: float) -> bool:
    """Return whether a run, resumed if possible, ended before it was killed."""
    journal = directory / "agenteval-report" / "journal.jsonl"
    # A run that was killed before its journal was written has not begun.
    resumed = journal.exists() and b"\n" in journal.read_bytes()
    process = _command(directory, *(["--resume"] if resumed else []))
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
    if status != 1:
        raise SystemExit(f"a run ended with status {status} instead of 1")
    return True


def _load(folder: Path, cases: int) -> None:
    _project(folder, _TROUBLED_AGENT, cases)
    began = time.monotonic()
    process = _command(folder, "--concurrency", str(_LOAD_AT_ONCE), timeout=5)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - began
    results = _results(folder)
    found = [case for suite in results["suites"] for case in suite["cases"]]
    asked = Counter((folder / "asked.log").read_text(encoding="utf-8").splitlines())
    whole = sum(len(case["iterations"]) == _ITERATIONS for case in found)
    # Only calls that shared a worker with a timed-out call are repeated.
    once = sum(count == 1 for count in asked.values())
    if (len(found), whole) != (cases, cases) or len({case["id"] for case in found}) != cases:
        raise SystemExit(f"{len(found)} of {cases} cases have a result, {whole} of them a complete one")
    print(
        "| cases | iterations asked | asked once | status | peak memory | CPU | wall |\n|--:|--:|--:|--:|--:|--:|--:|"
    )
    figures = (
        f"{cases:,}",
        f"{len(asked):,}",
        f"{once:,}",
        str(process.returncode),
        f"{usage.ru_maxrss / _KIB_PER_MIB:.0f} MiB",
        f"{usage.ru_utime + usage.ru_stime:.1f} s",
        f"{wall:.0f} s",
    )
    print(f"| {' | '.join(figures)} |")


def _project(directory: Path, agent: str, cases: int) -> None:
    directory.mkdir(exist_ok=True)
    lines = [
        f"  - {{name: '{number}', input: text {number}, ground_truth: text {number}}}" for number in range(cases)
    ]
    metrics = "evaluations: {metrics: [{type: standard, metric: equality, threshold: 1.0}]}"
    suite = "\n".join(["name: reliability", metrics, "test_cases:", *lines, ""])
    (directory / "agent.yaml").write_text(suite, encoding="utf-8")
    (directory / "agent.py").write_text(agent, encoding="utf-8")


def _command(directory: Path, *options: str, timeout: float = 60) -> subprocess.Popen[bytes]:
    agents = f"agents: {{default: {{python: 'agent:reply', timeout: {timeout}}}}}\n"
    (directory / "agenteval.yaml").write_text(agents, encoding="utf-8")
    fixed = ["--iterations", str(_ITERATIONS), "--concurrency", str(_AT_ONCE), "--seed", "1", "--quiet"]
    command = [sys.executable, "-m", "agenteval", "run", *fixed, *options]
    return subprocess.Popen(command, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _results(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / "agenteval-report" / "results.json").read_bytes())
    return found


def _said(directory: Path) -> Any:
    """Return the results of a run without its ids and times."""
    results = _results(directory)
    return _timeless({name: results[name] for name in ("suites", "summary")})


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _timeless(item) for name, item in value.items() if name not in _OF_THE_RUN}
    return [_timeless(item) for item in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
