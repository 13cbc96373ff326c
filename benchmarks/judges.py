"""Wall time of a run that waits for judges: 500 cases with three judges each, which answer after 200 ms.

    python -m benchmarks.judges [--cases 500] [--concurrency 16 32]

The agent's answers are recorded. The model is a server of OpenAI's interface in a separate process. The limit of
calls at the same time sets the shortest possible time: calls / concurrency × 200 ms. Ends with status 1 if a run
takes more than 1.1 times as long, or if a judge was not asked.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.speed.measure import run
from benchmarks.speed.programs import LIMIT_S
from benchmarks.speed.server import serving
from benchmarks.speed.workloads import LATENCY_S

MOST = 1.1
_JUDGES = 3
_SUITE = """\
name: judges
model: {{provider: openai, name: gpt-4o-mini, endpoint: "{url}v1"}}
instructions: {{inline: none}}
evaluations:
  metrics:
{metrics}
test_cases_file: cases.yaml
"""
_METRIC = (
    "    - {{type: geval, name: judge-{number}, criteria: It is right., evaluation_steps: [Check part {number}.]}}"
)


def main() -> int:
    """Measure each concurrency, print a table, and return 0 if every run is within its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[16, 32])
    options = parser.parse_args()
    print("| calls at the same time | shortest possible | taken | ratio | CPU |\n|--:|--:|--:|--:|--:|")
    ratios = []
    with serving("judge") as url:
        for at_once in options.concurrency:
            taken_s, cpu_s = _run(url, options.cases, at_once)
            shortest_s = options.cases * _JUDGES / at_once * LATENCY_S
            ratios.append(taken_s / shortest_s)
            figures = (at_once, f"{shortest_s:.2f} s", f"{taken_s:.2f} s", f"{ratios[-1]:.2f}", f"{cpu_s:.2f} s")
            print(f"| {' | '.join(map(str, figures))} |", flush=True)
    return 0 if max(ratios) <= MOST else 1


def _run(url: str, cases: int, at_once: int) -> tuple[float, float]:
    """Run the suite; return its duration as results.json says it, and the CPU time of the process, in seconds.

    The duration is without the program's start, which does not depend on the number of judges.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        metrics = "\n".join(_METRIC.format(number=number) for number in range(_JUDGES))
        (folder / "agent.yaml").write_text(_SUITE.format(url=url, metrics=metrics), encoding="utf-8")
        (folder / "agenteval.yaml").write_text(f"llm: {{concurrency: {at_once}, cache: false}}\n", encoding="utf-8")
        lines = [f"- {{name: c{number}, input: question {number}, ground_truth: answer}}" for number in range(cases)]
        (folder / "cases.yaml").write_text("\n".join(lines), encoding="utf-8")
        answers = [json.dumps({"case": f"c{number}", "response": f"answer {number}"}) for number in range(cases)]
        (folder / "answers.jsonl").write_text("\n".join(answers), encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "agenteval",
            "run",
            "agent.yaml",
            "--agent",
            "replay:answers.jsonl",
            "--quiet",
        ]
        variables = {**os.environ, "OPENAI_API_KEY": "key", "NO_PROXY": "127.0.0.1"}
        cost = run([*command, "--concurrency", str(at_once)], folder=folder, environment=variables, limit_s=LIMIT_S)
        results = json.loads((folder / "agenteval-report" / "results.json").read_text(encoding="utf-8"))
        if results["summary"]["usage"]["llm_calls"] != cases * _JUDGES:
            raise SystemExit(f"not every judge was asked: {results['summary']['usage']}")
        return results["run"]["duration_s"], cost.cpu_s


if __name__ == "__main__":
    sys.exit(main())
