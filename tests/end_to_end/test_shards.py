"""One run on several machines: its shards, and what they make when they are merged."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from tests.end_to_end.conftest import Command
from tests.support import QUICKSTART, ROOT, agenteval, case, python_agent, said, statuses, verdict_of, write_suite

from agenteval.results.model import Results
from agenteval.results.store import read_results
from agenteval.run.config import Settings
from agenteval.run.context import FoundBaseline, RunContext, Search
from agenteval.run.merge import merge_files

SCHEMA = json.loads((ROOT / "schemas" / "results.schema.json").read_text(encoding="utf-8"))

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


def recorded(directory: Path, **latencies_ms: float) -> None:
    """Cases with recorded answers that took so long."""
    write_suite(directory, [case(name) for name in latencies_ms], agent={"replay": "answers.jsonl"})
    lines = [
        json.dumps({"case": name, "response": "hello", "latency_ms": latency})
        for name, latency in latencies_ms.items()
    ]
    (directory / "answers.jsonl").write_text("\n".join(lines), encoding="utf-8")


def shards(command: Command, count: int, *arguments: str) -> list[str]:
    """Run every shard; the directories of their reports."""
    places = [f"shard-{number}" for number in range(1, count + 1)]
    for number, place in enumerate(places, start=1):
        done = command("run", "--shard", f"{number}/{count}", "--out", place, "--quiet", *arguments)
        assert done.status == 0, done.text
    return places


def names(place: str | Path) -> set[str]:
    return set(statuses(read_results(Path(place))))


def test_the_shards_of_the_quickstart_make_the_whole_run(tmp_path: Path) -> None:
    whole = agenteval("run", QUICKSTART, "--out", tmp_path / "whole", cwd=ROOT)
    assert whole.status == 0, whole.text
    for number in (1, 2, 3):
        done = agenteval("run", QUICKSTART, "--shard", f"{number}/3", "--out", tmp_path / f"{number}", cwd=ROOT)
        assert done.status == 0, done.text
        assert f"shard {number} of 3, {7 if number == 1 else 6} of 19 cases" in done.out
        part = json.loads((tmp_path / f"{number}" / "results.json").read_text(encoding="utf-8"))
        Draft202012Validator(SCHEMA).validate(part)
        assert (part["run"]["shard"]["index"], part["run"]["shard"]["count"]) == (number, 3)
        assert len(part["run"]["shard"]["cases"]) == 19
    files = [tmp_path / number for number in ("3", "1")]
    done = agenteval("merge", *files, tmp_path / "2" / "results.json", "-o", tmp_path / "merged", cwd=ROOT)
    assert done.status == 0, done.text
    assert verdict_of(done.out) == verdict_of(whole.out) == "passed: 19 of 19 cases passed"
    merged = read_results(tmp_path / "merged")
    assert said(merged) == said(read_results(tmp_path / "whole"))
    assert merged.run.shard is None
    assert [entry.run_id for entry in merged.baseline_runs] == [merged.run.id]
    text = (tmp_path / "merged" / "results.json").read_text(encoding="utf-8")
    Draft202012Validator(SCHEMA).validate(json.loads(text))
    reports = {"comment.md", "junit.xml", "summary.md"}
    assert reports <= {path.name for path in (tmp_path / "merged").iterdir()}


def test_durations_of_the_baseline_divide_the_cases(command: Command, tmp_path: Path) -> None:
    recorded(tmp_path, a=1, b=1, slow=5000, c=1, d=1)
    parts = shards(command, 2)
    assert (names("shard-1"), names("shard-2")) == ({"a", "c", "slow"}, {"b", "d"})
    command("merge", *parts, "-o", "base")
    # Cases move to other shards, and keep their baseline.
    shards(command, 2, "--baseline", "base")
    assert (names("shard-1"), names("shard-2")) == ({"slow"}, {"a", "b", "c", "d"})
    assert read_results(Path("shard-1")).comparison is None
    done = command("merge", "shard-1", "shard-2", "-o", "merged", "--baseline", "base")
    assert done.status == 0, done.text
    merged = read_results(Path("merged"))
    assert list(statuses(merged)) == ["a", "b", "slow", "c", "d"]
    assert merged.comparison is not None
    assert [found.change for found in merged.comparison.cases] == ["same"] * 5
    assert [entry.run_id for entry in merged.baseline_runs] == [read_results(Path("base")).run.id, merged.run.id]


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
