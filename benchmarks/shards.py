"""Scale: a run in shards is that of one machine, and 100,000 cases cost no more for each than 1,000.

    python -m benchmarks.shards [--cases 20000] [--shards 8] [--sizes 1000 10000 100000] [--write]

Recorded answers, of which one in fifty is wrong, are compared with a baseline without wrong answers. Each shard and
the merge is a separate process, one after the other. CPU per case is without the start, which is that of one case.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.speed.measure import Cost, run
from benchmarks.speed.programs import LIMIT_S, environment

_RESULTS = Path(__file__).with_name("RESULTS.md")
_HEADING = "## Shards"
_SUITE = """\
name: shards
agent: {{replay: {answers}.jsonl}}
evaluations: {{metrics: [{{type: standard, metric: f1_score, threshold: 0.9}}]}}
test_cases_file: cases.yaml
"""
_MACHINE = "Two cores that other programs share: the ratios count, and CPU time more than wall time."
_ONE_WRONG_IN = 50
_TIMES = frozenset({"latency_ms", "duration_ms", "resources", "run", "run_id", "created_at"})


def main() -> None:
    """Measure, compare and print; fail if the merged run is another one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=20_000, help="cases of the run in shards (%(default)s)")
    parser.add_argument("--shards", type=int, default=8, help="number of shards (%(default)s)")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="cases of one run")
    parser.add_argument("--write", action="store_true", help=f"also into {_RESULTS.name}")
    options = parser.parse_args()
    # First, as the peak of a process begins at that of its parent, which reads results below.
    growth = list(_growth(options.sizes))
    text = "\n".join([_HEADING, "", _MACHINE, "", *_sharded(options.cases, options.shards), "", *growth])
    print(text)
    if options.write:
        kept = _RESULTS.read_text("utf-8").partition(f"\n{_HEADING}\n")[0]
        _RESULTS.write_text(f"{kept}\n{text}\n", "utf-8")


def _sharded(cases: int, shards: int) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_suite(folder, cases)
        _agenteval(folder, "run", "--out", "base")
        (folder / "agent.yaml").write_text(_SUITE.format(answers="wrong"), "utf-8")
        parts = [f"part-{number}" for number in range(1, shards + 1)]
        compared = ("--baseline", "base", "--fail-on", "none")
        whole, said = _agenteval(folder, "run", "--out", "whole", *compared)
        costs = [
            _agenteval(folder, "run", "--shard", f"{number}/{shards}", "--out", part, "--baseline", "base")[0]
            for number, part in enumerate(parts, start=1)
        ]
        merge, merged = _agenteval(folder, "merge", *parts, "-o", "merged", *compared)
        results = [
            _untimed(json.loads((folder / place / "results.json").read_text("utf-8")))
            for place in ("whole", "merged")
        ]
        if results[0] != results[1]:
            raise SystemExit(f"the merged results differ: {next(_differences(*results))}")
        if said != merged:
            raise SystemExit(f"one machine says {said!r}, the merge {merged!r}")
    longest = Cost(*(max(getattr(cost, name) for cost in costs) for name in ("cpu_s", "wall_s", "peak_mib")))
    yield f"{cases:,} cases on one machine and in {shards} shards: the same scores, comparison and verdict ({said})."
    yield "\n| | wall s | CPU s | peak MiB |\n| :-- | --: | --: | --: |"
    yield _row("one machine", whole)
    yield _row(f"the most of {shards} shards", longest)
    yield _row("merge", merge)


def _growth(sizes: list[int]) -> Iterator[str]:
    start, *costs = (_whole(size) for size in (1, *sizes))
    each_ms = [1000 * (cost.cpu_s - start.cpu_s) / size for cost, size in zip(costs, sizes, strict=True)]
    yield "| cases | wall s | CPU s | peak MiB | CPU ms per case | ratio |\n| --: | --: | --: | --: | --: | --: |"
    for size, cost, each in zip(sizes, costs, each_ms, strict=True):
        yield f"{_row(f'{size:,}', cost)} {each:.3f} | {each / each_ms[0]:.2f} |"


def _whole(size: int) -> Cost:
    with tempfile.TemporaryDirectory() as name:
        _write_suite(Path(name), size)
        return _agenteval(Path(name), "run", "--out", "whole")[0]


def _row(name: str, cost: Cost) -> str:
    return f"| {name} | {cost.wall_s:.2f} | {cost.cpu_s:.2f} | {cost.peak_mib:.0f} |"


def _agenteval(folder: Path, *arguments: str) -> tuple[Cost, str]:
    """Run a command; return its cost and the line with the verdict."""
    command = [
        str(Path(sys.executable).with_name("agenteval")),
        *arguments,
        *(["--quiet"] if arguments[0] == "run" else []),
    ]
    cost = run(command, folder=folder, environment=environment(folder), limit_s=LIMIT_S)
    said = re.search(r"(?m)^[A-Z]{5,}  .*", (folder / "output.txt").read_text("utf-8"))
    return cost, said[0].partition("   ")[0] if said else ""


def _untimed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _untimed(item) for key, item in value.items() if key not in _TIMES}
    return [_untimed(item) for item in value] if isinstance(value, list) else value


def _differences(one: Any, other: Any, place: str = "results") -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            yield from _differences(one.get(key), other.get(key), f"{place}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, pair in enumerate(zip(one, other, strict=True)):
            yield from _differences(*pair, f"{place}[{number}]")
    elif one != other:
        yield f"{place}: {str(one)[:200]} on one machine, {str(other)[:200]} merged"


def _write_suite(folder: Path, cases: int) -> None:
    (folder / "agent.yaml").write_text(_SUITE.format(answers="right"), "utf-8")
    with (
        (folder / "cases.yaml").open("w", encoding="utf-8") as file,
        (folder / "right.jsonl").open("w", encoding="utf-8") as right,
        (folder / "wrong.jsonl").open("w", encoding="utf-8") as wrong,
    ):
        for number in range(cases):
            name, answer = f"case-{number}", f"the answer to question {number}"
            file.write(f"- {{name: {name}, input: question {number}, ground_truth: {answer}}}\n")
            right.write(json.dumps({"case": name, "response": answer}) + "\n")
            changed = answer if (number + 1) % _ONE_WRONG_IN else "no idea"
            wrong.write(json.dumps({"case": name, "response": changed}) + "\n")


if __name__ == "__main__":
    main()
