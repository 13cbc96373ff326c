"""Memory and time for scoring recorded traces: ten thousand against one thousand.

    python -m benchmarks.traces [--sizes 1000 10000]

Each size is scored by ``agenteval run --traces`` in a separate process, with rules only and all reports; the peak
of its memory is what the operating system reports. Memory should hardly grow with the traces.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

_SUITE = """\
evaluators:
  - name: basics
    type: rule_based
    weight: 1.0
    rules:
      - check: output_not_empty
      - check: success
      - check: latency_under
        budget_ms: 2000
  - name: words
    type: rule_based
    weight: 0.5
    rules:
      - check: contains
        keywords: [help]
aggregate: {method: weighted_sum, threshold: 0.7}
"""
_PERSONAS = ("novice", "expert", "hurried")
_KIB_PER_MIB = 1024


def main() -> None:
    """Measure every size and print a table with ratios to the smallest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000], help="numbers of traces")
    sizes = parser.parse_args().sizes
    with tempfile.TemporaryDirectory() as folder:
        measured = [(size, *_measure(Path(folder), size)) for size in sizes]
    first_memory = measured[0][1]
    print("| traces | peak memory | ratio | CPU | CPU per trace |\n|--:|--:|--:|--:|--:|")
    for size, memory, seconds in measured:
        ratio = f"{memory / first_memory:.2f}"
        print(f"| {size:,} | {memory:.0f} MiB | {ratio} | {seconds:.2f} s | {1000 * seconds / size:.2f} ms |")


def _measure(folder: Path, size: int) -> tuple[float, float]:
    """Return the peak memory (MiB) and CPU time (s) of one run."""
    suite, traces = folder / "evaluation.yaml", folder / f"traces-{size}.jsonl"
    suite.write_text(_SUITE, encoding="utf-8")
    _write_traces(traces, size)
    command = [sys.executable, "-m", "agenteval", "run", str(suite), "--traces", str(traces), "--quiet"]
    process = subprocess.Popen([*command, "--out", str(folder / f"out-{size}")], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"agenteval ended with status {process.returncode}")
    return usage.ru_maxrss / _KIB_PER_MIB, usage.ru_utime + usage.ru_stime


def _write_traces(path: Path, size: int) -> None:
    chance = random.Random(size)
    with path.open("w", encoding="utf-8") as file:
        for number in range(size):
            trace = {
                "trace_id": f"trace-{number}",
                "iteration": number // 10,
                "persona": chance.choice(_PERSONAS),
                "input": f"Question {number}: " + "how does this work? " * 10,
                "output": "I can help you with that, step by step. " * 6,
                "duration_ms": chance.uniform(10, 2500),
                "success": True,
            }
            file.write(json.dumps(trace) + "\n")


if __name__ == "__main__":
    main()
