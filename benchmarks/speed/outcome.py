"""Reads the results of a program: ``python -m benchmarks.speed.outcome LEAVES`` in its folder prints JSON.

It runs in a separate process, because large results would increase the memory of the measuring process. On Linux the
peak memory of a child starts at that of its parent.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.speed.measure import ProgramError
from benchmarks.speed.workloads import Workload

_OUR_METRICS = {"bleu": "bleu", "rouge": "rougeL", "f1_score": "f1"}
_REPORTS = ("results.json", "junit.xml", "summary.md", "comment.md", "report.html", "journal.jsonl")
# Libraries round differently from the loop only in the last digits of a sum.
_AGREES = 1e-5


@dataclass(frozen=True, slots=True)
class Outcome:
    """Number of results, number of passed ones, and the mean of each score by name."""

    results: int
    passed: int
    means: Mapping[str, float]


def read_outcome(folder: Path, leaves: str, environment: Mapping[str, str]) -> Outcome:
    """Return the results of the program in ``folder``.

    Raises:
        ProgramError: there are no readable results.
    """
    command = [sys.executable, "-m", "benchmarks.speed.outcome", leaves]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ProgramError(f"its results cannot be read: {done.stderr.strip()[-300:]}")
    return Outcome(**json.loads(done.stdout))


def check_outcome(outcome: Outcome, workload: Workload, means: Mapping[str, float]) -> None:
    """Check that all work was done, and that the scores equal those of the direct library calls in ``means``.

    Raises:
        ProgramError: a check failed.
    """
    if outcome.results != workload.cases:
        raise ProgramError(f"{outcome.results} results instead of {workload.cases}")
    if outcome.passed != workload.cases:
        raise ProgramError(f"{outcome.passed} of {workload.cases} cases passed")
    for name in sorted(means.keys() & outcome.means.keys()):
        if abs(means[name] - outcome.means[name]) > _AGREES:
            raise ProgramError(f"mean {name} is {outcome.means[name]:.6f} instead of {means[name]:.6f}")


def from_agenteval(folder: Path) -> dict[str, Any]:
    """Return the outcome of ``agenteval run --out out``; all reports must exist."""
    out = folder / "out"
    for name in _REPORTS:
        if not (out / name).stat().st_size:
            raise ValueError(f"{name} is empty")
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    turns = [turn for suite in results["suites"] for case in suite["cases"] for turn in _turns(case)]
    rows = [{score["id"]: score["score"] for score in turn["scores"]} for turn in turns]
    if not any(name in row for name in _OUR_METRICS for row in rows):
        return {"results": len(rows), "passed": results["summary"]["passed"], "means": {}}
    sums = {key: sum(row[name] for row in rows) for name, key in _OUR_METRICS.items()}
    means = {key: total / len(rows) for key, total in sums.items()}
    return {"results": len(rows), "passed": len(rows) - results["summary"]["errors"], "means": means}


def _turns(case: dict[str, Any]) -> list[dict[str, Any]]:
    return [turn for iteration in case["iterations"] for turn in iteration["turns"]]


def _from_promptfoo(folder: Path) -> dict[str, Any]:
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))["results"]
    return {"results": len(results["results"]), "passed": results["stats"]["successes"], "means": {}}


def _from_driver(folder: Path) -> dict[str, Any]:
    outcome: dict[str, Any] = json.loads((folder / "outcome.json").read_text(encoding="utf-8"))
    return outcome


_READERS = {"agenteval": from_agenteval, "promptfoo": _from_promptfoo, "driver": _from_driver}

if __name__ == "__main__":
    print(json.dumps(_READERS[sys.argv[1]](Path.cwd())))
