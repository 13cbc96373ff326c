"""Results of which nothing can run again: a metric that changed scores the stored answers of the baseline again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.end_to_end.conftest import Command
from tests.support import Ended, case, python_agent, write_suite

EXACT = {"type": "standard", "metric": "equality", "threshold": 1.0}
LENIENT = {**EXACT, "case_insensitive": True}
WORDS = [f"word{number}" for number in range(20)]
AGENT = """
import os
def reply(request):
    question = request["input"]
    return "wrong" if int(question.removeprefix("word")) < int(os.environ["BROKEN"]) else question.upper()
"""
Run = Callable[..., None]
OPTIONS = ("--fail-on", "regressions,unproven,errors")


def compared(command: Command) -> Ended:
    return command("compare", "now", "before", *OPTIONS)


def merged(command: Command) -> Ended:
    shards = ("shards/1", "shards/2")
    return command("merge", *shards, "--baseline", "before", "--output", "merged", *OPTIONS)


def write(folder: Path, metric: dict[str, object]) -> None:
    agent = python_agent(folder, AGENT)
    write_suite(folder, [case(word, word, word) for word in WORDS], agent=agent, evaluations={"metrics": [metric]})


@pytest.fixture
def run(command: Command, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the suite with an agent that answers so many questions wrong."""

    def made(broken: int, *arguments: str) -> None:
        with monkeypatch.context() as changed:
            changed.setenv("BROKEN", str(broken))
            command("run", "--quiet", "--fail-on", "none", *arguments)

    return made


@pytest.mark.parametrize("decide", [compared, merged])
@pytest.mark.parametrize("broken", [0, 10])
def test_files_are_compared_by_the_new_rules(
    tmp_path: Path, command: Command, run: Run, decide: Callable[[Command], Ended], broken: int
) -> None:
    write(tmp_path, EXACT)
    run(0, "--out", "before")
    write(tmp_path, LENIENT)
    if decide is compared:
        run(broken, "--out", "now")
    else:
        for shard in (1, 2):
            run(broken, "--shard", f"{shard}/2", "--out", f"shards/{shard}")
    ended = decide(command)
    assert "equality was scored again for the answers of run" in ended.text
    # The change has chosen the rules, so nothing is green.
    assert ended.status == 1, ended.text
    assert ("equality is 0.50 lower than on earlier days" in ended.text) == (broken == 10)


def test_suites_that_changed_since_the_run_score_nothing(tmp_path: Path, command: Command, run: Run) -> None:
    write(tmp_path, EXACT)
    run(0, "--out", "before")
    write(tmp_path, LENIENT)
    run(0, "--out", "now")
    write(tmp_path, {**LENIENT, "strip_whitespace": True})
    ended = compared(command)
    assert "scored again" not in ended.text
    assert "the rules of 20 cases changed since earlier runs (equality): not compared" in ended.text
