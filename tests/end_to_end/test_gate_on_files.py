"""Results of which nothing can run again: they alone decide, and an unmistakable drop is red."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.conftest import Command
from tests.support import Ended, case, python_agent, verdict_of, write_suite

from agenteval.results.comparison import Comparison
from agenteval.results.store import read_results

CASES = 20
AGENT = """
import os
def reply(request):
    return "wrong" if int(request["case"]) < int(os.environ["BROKEN"]) else request["input"]
"""


def run(command: Command, patch: pytest.MonkeyPatch, broken: int, *arguments: str) -> Ended:
    with patch.context() as changed:
        changed.setenv("BROKEN", str(broken))
        return command("run", "--quiet", "--fail-on", "none", *arguments)


def comparison(out: Path) -> Comparison:
    found = read_results(out).comparison
    assert found is not None
    return found


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    write_suite(tmp_path, [case(str(number)) for number in range(CASES)], agent=python_agent(tmp_path, AGENT))
    return tmp_path


@pytest.mark.parametrize("iterations", ["1", "3"])
@pytest.mark.parametrize("outcome", ["0 0 passed", "3 3 unproven", "10 1 failed", "20 1 failed"])
def test_one_run_each(
    suite: Path, command: Command, monkeypatch: pytest.MonkeyPatch, iterations: str, outcome: str
) -> None:
    broken, status, verdict = outcome.split()
    for out, count in (("before", 0), ("now", int(broken))):
        run(command, monkeypatch, count, "--iterations", iterations, "--out", out)
    ended = command("compare", "now", "before", "--fail-on", "regressions,unproven,errors")
    assert ended.status == int(status), ended.text
    assert verdict_of(ended.out).startswith(f"{verdict}: ")


@pytest.mark.parametrize("older", ["before", "now"])
@pytest.mark.parametrize("outcome", ["0 0", "10 3"])
def test_results_of_schema_version_1_only_raise_suspicions(
    suite: Path, command: Command, monkeypatch: pytest.MonkeyPatch, older: str, outcome: str
) -> None:
    broken, status = map(int, outcome.split())
    for out, count in (("before", 0), ("now", broken)):
        run(command, monkeypatch, count, "--iterations", "3", "--out", out)
    as_version_1(suite / older)
    ended = command("compare", "now", "before", "--fail-on", "regressions,unproven,errors")
    assert ended.status == status, ended.text
    assert ("results of an earlier version of agenteval may only raise suspicions" in ended.text) == bool(broken)


def as_version_1(out: Path) -> None:
    file = out / "results.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**content, "schema_version": 1}), encoding="utf-8")


def two_runs(suite: Path, command: Command, monkeypatch: pytest.MonkeyPatch, changed: str) -> tuple[Path, Any]:
    """Make a run in which all cases pass, ``before``, and one in which none does, ``now``; return one's results."""
    run(command, monkeypatch, 0, "--out", "before")
    run(command, monkeypatch, CASES, "--out", "now")
    file = suite / changed / "results.json"
    return file, json.loads(file.read_text(encoding="utf-8"))


def test_results_that_were_changed_after_the_run_are_refused(
    suite: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed case that is called passed, no case at all, every case skipped, cases several times."""
    file, content = two_runs(suite, command, monkeypatch, "now")
    (tested,) = content["suites"]
    cases = tested["cases"]
    for changed, said in (
        (
            [{**item, "status": "passed"} for item in cases],
            "has the status passed, and its iterations make it failed",
        ),
        (
            [{**item, "status": "skipped"} for item in cases],
            "has the status skipped, and its iterations make it failed",
        ),
        ([], f"summary.cases is {CASES}, and of its cases it is 0"),
        (cases * 4, "is in it 4 times"),
    ):
        file.write_text(json.dumps({**content, "suites": [{**tested, "cases": changed}]}), encoding="utf-8")
        for baseline in ("before", "now"):
            ended = command("compare", "now", baseline)
            assert (ended.status, ended.out) == (2, "")
            assert "the file contradicts itself, so it was changed after the run: " in ended.err
            assert said in ended.err
    passed = {"cases": CASES, "passed": CASES, "failed": 0, "errors": 0, "skipped": 0, "pass_rate": 1.0}
    for item in cases:
        item["status"] = "passed"
        for iteration in item["iterations"]:
            iteration["status"] = "passed"
    file.write_text(json.dumps({**content, "summary": {**content["summary"], **passed}}), encoding="utf-8")
    (suite / "now" / "summary.md").unlink()
    for arguments in (
        ("compare", "now", "before"),
        ("merge", "now", "-o", "merged"),
        ("merge", "now", "-o", "merged", "--baseline", "before"),
        ("report", "now"),
        ("report", "now", "-o", "now.md"),
        ("publish", "now", "--dry-run", "--repository", "o/r", "--commit", "a" * 40),
    ):
        ended = command(*arguments)
        assert (ended.status, "passed, and its iterations make it failed" in ended.err) == (2, True), ended.text
    assert not [name for name in ("merged", "now.md", "now/summary.md") if (suite / name).exists()]


def test_a_baseline_with_other_cases_than_its_summary_says_is_refused(
    suite: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, content = two_runs(suite, command, monkeypatch, "before")
    file.write_text(json.dumps({**content, "suites": [], "pool": []}), encoding="utf-8")
    for arguments in (
        ("compare", "now", "before"),
        ("run", "--baseline", "before"),
        ("merge", "now", "-o", "merged"),
    ):
        ended = command(*arguments, *(("--baseline", "before") if arguments[0] == "merge" else ()))
        assert ended.status == 2, ended.text
        assert f"summary.cases is {CASES}, and of its cases it is 0" in ended.err


def test_merged_shards(suite: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    run(command, monkeypatch, 0, "--out", "before")
    for shard in (1, 2):
        run(command, monkeypatch, 10, "--shard", f"{shard}/2", "--out", f"shards/{shard}")
    options = ("--baseline", "before", "--fail-on", "regressions", "--output", "merged/results.json")
    ended = command("merge", "shards/1", "shards/2", *options)
    assert ended.status == 1, ended.text
    found = comparison(suite / "merged")
    assert (found.verdict, found.stage) == ("regressed", "files")
    assert verdict_of(ended.out) == "failed: equality fell by 50 points"
    assert "sure?  equality fell by 50 points. Without a change, that has a probability of 0.049 %" in ended.out


# Results of another tool

TOKEN = f"ghp_{'0a1B' * 9}"


def promptfoo(file: Path, broken: int) -> None:
    """Write results of promptfoo, whose first cases failed."""
    rows = [
        {
            "provider": {"id": "openai:gpt-4o", "label": ""},
            "prompt": {"raw": f"question {number}", "label": "{{q}}"},
            "vars": {"q": str(number)},
            "response": {"output": f"answer {TOKEN}"},
            "success": number >= broken,
            "score": float(number >= broken),
            "latencyMs": 800,
            "gradingResult": {
                "pass": number >= broken,
                "score": float(number >= broken),
                "reason": "",
                "componentResults": [
                    {
                        "pass": number >= broken,
                        "score": float(number >= broken),
                        "reason": "",
                        "assertion": {"type": "contains", "value": "answer"},
                    }
                ],
            },
            "testCase": {"description": f"case {number}", "vars": {"q": str(number)}},
        }
        for number in range(CASES)
    ]
    results = {"version": 3, "timestamp": f"2026-11-2{broken % 9}T19:41:13.880Z", "results": rows, "stats": {}}
    file.write_text(json.dumps({"evalId": "eval", "results": results, "config": {}}), encoding="utf-8")


@pytest.mark.parametrize("outcome", ["0 0 unchanged", "10 1 regressed"])
def test_results_of_another_tool(tmp_path: Path, command: Command, outcome: str) -> None:
    broken, status, verdict = outcome.split()
    promptfoo(tmp_path / "then.json", 0)
    promptfoo(tmp_path / "now.json", int(broken))
    options = ("--baseline", "then.json", "--fail-on", "regressions,unproven", "--output", "decided")
    ended = command("merge", "now.json", *options)
    assert ended.status == int(status), ended.text
    results = read_results(tmp_path / "decided")
    assert results.tool.name == "promptfoo"
    assert comparison(tmp_path / "decided").verdict == verdict
    for report in (tmp_path / "decided").iterdir():
        assert TOKEN not in report.read_text(encoding="utf-8"), report.name
