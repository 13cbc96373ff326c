"""CPU time of ``agenteval compare`` on large results: 1,000 cases, five metrics, ten runs in the baseline.

    python -m benchmarks.compare [--cases 1000] [--metrics 5] [--runs 10]

Two result files have random scores. One has no change and one a drop of ten points. Each comparison runs in a
separate process, whose start-up and reading count.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from agenteval.core.writing import write_file
from agenteval.gate.run_scores import baseline_run
from agenteval.results.case import CaseResult, IterationResult, Score, SuiteResult, TurnResult
from agenteval.results.comparison import BaselineRun
from agenteval.results.model import Results, Run, Tool
from agenteval.results.rollup import case_status, iteration_status, mean_score, summarise
from agenteval.results.store import IN_MEMORY, results_json
from agenteval.suite.model import Fingerprints

_ITERATIONS = 3
_NOISY = 0.2


def main() -> None:
    """Make the files, compare, and print the CPU time of each comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("cases", 1000), ("metrics", 5), ("runs", 10)):
        parser.add_argument(f"--{name}", type=int, default=default)
    sizes = parser.parse_args()
    chance = random.Random(1)
    rates = [chance.betavariate(2, 2) if chance.random() < _NOISY else 1.0 for _ in range(sizes.cases)]
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        baseline: list[BaselineRun] = []
        for number in range(sizes.runs):
            baseline += _run(chance, f"base-{number}", rates, sizes.metrics, baseline).baseline_runs[-1:]
        _write(directory / "baseline.json", _run(chance, f"base-{sizes.runs - 1}", rates, sizes.metrics, baseline))
        print("| change | CPU |\n|:--|--:|")
        for name, drop in (("none", 0.0), ("-10 points", 0.1)):
            current = _run(chance, "current", [max(0.0, rate - drop) for rate in rates], sizes.metrics, [])
            _write(directory / "current.json", current)
            print(f"| {name} | {_seconds(directory):.2f} s |")


def _run(
    chance: random.Random, run_id: str, rates: list[float], metrics: int, baseline: list[BaselineRun]
) -> Results:
    """Return one run with random scores, and a baseline that contains it."""
    cases = [_case(chance, number, rate, metrics) for number, rate in enumerate(rates)]
    suite = SuiteResult(path="agent.yaml", name="suite", format="holodeck", fingerprint="f", cases=cases)
    started = f"2026-01-01T00:00:{len(baseline):02d}Z"
    results = Results(
        tool=Tool(version="0"),
        run=Run(id=run_id, started_at=started, finished_at=started, duration_s=1.0, complete=True),
        summary=summarise(cases),
        suites=[suite],
    )
    own = baseline_run(results, {case.id: Fingerprints(case.name) for case in cases})
    return results.model_copy(
        update={"baseline_runs": [*(entry for entry in baseline if entry.run_id != run_id), own]}
    )


def _case(chance: random.Random, number: int, rate: float, metrics: int) -> CaseResult:
    iterations = [_iteration(chance, index, rate, metrics) for index in range(_ITERATIONS)]
    return CaseResult(
        id=f"agent.yaml::case-{number}",
        name=f"case-{number}",
        status=case_status([iteration.status for iteration in iterations]),
        score=sum(iteration.score or 0.0 for iteration in iterations) / _ITERATIONS,
        iterations=iterations,
    )


def _iteration(chance: random.Random, index: int, rate: float, metrics: int) -> IterationResult:
    scores = []
    for number in range(metrics):
        passed = chance.random() < rate
        scores.append(
            Score(id=f"metric-{number}", kind="standard", score=float(passed), passed=passed, status="scored")
        )
    turn = TurnResult(index=0, input="question", ground_truth="x", response="answer " * 20, scores=scores)
    return IterationResult(index=index, status=iteration_status([turn]), score=mean_score([turn]), turns=[turn])


def _write(path: Path, results: Results) -> None:
    write_file(path.parent, path.name, results_json(results, IN_MEMORY))


def _seconds(directory: Path) -> float:
    """Return the CPU time of one comparison in seconds."""
    files = [str(directory / name) for name in ("current.json", "baseline.json")]
    command = [sys.executable, "-m", "agenteval", "compare", *files, "--fail-on", "none"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"agenteval ended with status {process.returncode}")
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
