"""Results of which nothing can run again: they alone decide, and an unmistakable drop is red."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.end_to_end.conftest import Command
from tests.support import Ended, case, python_agent, write_suite

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
    assert ended.out.splitlines()[-1].startswith(f"agenteval: {verdict}: ")


def test_merged_shards(suite: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    run(command, monkeypatch, 0, "--out", "before")
    for shard in (1, 2):
        run(command, monkeypatch, 10, "--shard", f"{shard}/2", "--out", f"shards/{shard}")
    options = ("--baseline", "before", "--fail-on", "regressions", "--output", "merged/results.json")
    ended = command("merge", "shards/1", "shards/2", *options)
    assert ended.status == 1, ended.text
    found = comparison(suite / "merged")
    assert (found.verdict, found.stage) == ("regressed", "files")
    assert "equality fell: it scored 50 points less" in ended.out
