"""One run on several machines: its shards, and what they make when they are merged."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.support import case, python_agent, verdict_of, write_suite

from agenteval.results.model import Results
from agenteval.results.store import read_results
from agenteval.run.config import Settings
from agenteval.run.context import FoundBaseline, RunContext, Search
from agenteval.run.merge import merge_files

# An agent that is as slow and as right as its input says.
OBEDIENT = """
import os
def reply(request):
    if request["input"] == "crash":
        raise RuntimeError("no model")
    return os.environ.get("ANSWER", request["input"])
"""


def suite_of(directory: Path, *names: str, **config: Any) -> None:
    """Cases whose names say what becomes of them."""
    answers = {"fail": "other", "skip": None}
    cases = [
        case(name, "crash" if name.startswith("crash") else "hello", answers.get(name[:4], "hello")) for name in names
    ]
    write_suite(directory, cases)
    agents = {"default": python_agent(directory, OBEDIENT)}
    (directory / "agenteval.yaml").write_text(yaml.safe_dump({"agents": agents, **config}), encoding="utf-8")


def shards(command: Command, count: int, *arguments: str) -> list[str]:
    """Run every shard; the directories of their reports."""
    places = [f"shard-{number}" for number in range(1, count + 1)]
    for number, place in enumerate(places, start=1):
        done = command("run", "--shard", f"{number}/{count}", "--out", place, "--quiet", *arguments)
        assert done.status == 0, done.text
    return places


def test_a_merged_run_is_compared_by_its_files_alone(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite_of(tmp_path, *(f"case-{number}" for number in range(30)))
    command("run", "--out", "base", "--quiet")
    monkeypatch.setenv("ANSWER", "wrong")
    whole = command("run", "--out", "whole", "--baseline", "base", "--fail-on", "regressions")
    parts = shards(command, 3, "--baseline", "base")
    done = command("merge", *parts, "-o", "merged", "--baseline", "base", "--fail-on", "regressions")
    assert (whole.status, done.status) == (0, 0), done.text
    first, second = (read_results(Path(place)).comparison for place in ("whole", "merged"))
    assert first is not None
    assert second is not None
    assert (first.state, second.state, second.stage) == ("unproven", "unproven", "alone")
    assert [found.status_after for found in second.cases] == [found.status_after for found in first.cases]
    assert [metric.difference for metric in second.metrics] == [-1.0]
    assert command("merge", *parts, "-o", "merged", "--baseline", "base", "--fail-on", "none").status == 0


@dataclass(frozen=True)
class Remote:
    """A baseline that lies elsewhere."""

    results: Results
    asked: list[set[str]] = field(default_factory=list)

    def search(self, cases: Collection[str]) -> Search:
        self.asked.append(set(cases))
        return Search(FoundBaseline(self.results, distance=2), ("one run was left out",))


def test_a_baseline_may_lie_elsewhere(command: Command, tmp_path: Path) -> None:
    suite_of(tmp_path, "a", "b")
    command("run", "--out", "base", "--quiet")
    parts = [Path(place) for place in shards(command, 2)]
    remote = Remote(read_results(Path("base")))
    outcome = merge_files(parts, Path("merged"), Settings(), RunContext(baseline=remote.search))
    assert remote.asked == [{"agent.yaml::a", "agent.yaml::b"}]
    comparison = read_results(Path("merged")).comparison
    assert comparison is not None
    assert (comparison.baseline.run_id, comparison.baseline.distance) == (remote.results.run.id, 2)
    assert "one run was left out" in outcome.warnings


def test_criteria_are_checked_on_the_whole(command: Command, tmp_path: Path) -> None:
    # In neither shard the share of errors is that of the run.
    wanted = {"error_rate_percent": 30, "quality": {"equality": 0.9}, "all_successful": True}
    suite_of(tmp_path, "a", "crash", "b", "c", criteria=wanted, gate={"max_error_rate": 1, "fail_on": ["failures"]})
    whole = command("run", "--out", "whole", "--quiet")
    places = shards(command, 2)
    for place in places:
        criteria = read_results(Path(place)).suites[0].criteria
        assert [(found.name, found.met) for found in criteria] == [
            ("all_traces_successful", None),
            ("error_rate", None),
            ("quality.equality", None),
        ]
    done = command("merge", *places, "-o", "merged")
    assert (whole.status, done.status) == (1, 1), done.text
    merged = read_results(Path("merged"))
    assert [found.met for found in merged.suites[0].criteria] == [False, True, True]
    assert merged.suites[0].criteria == read_results(Path("whole")).suites[0].criteria
    assert verdict_of(done.out) == verdict_of(whole.out)
