"""Time limits of a run, and what is drawn from its seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.support import Answer, case, python_agent, results_in, said, serving, statuses, verdict_of, write_suite

from agenteval.results.store import read_results

# Case "slow" never answers; the others do at once.
AGENT = """
import time
def reply(request):
    if request["case"].startswith("slow"):
        time.sleep(1000)
    return request["input"]
"""


def project(directory: Path, *names: str, agent: dict[str, Any] | None = None, **config: Any) -> None:
    agents = {"default": agent or python_agent(directory, AGENT)}
    write_suite(directory, [case(name) for name in names])
    (directory / "agenteval.yaml").write_text(yaml.safe_dump({"agents": agents, **config}), encoding="utf-8")


@pytest.mark.parametrize(
    ("config", "arguments"), [({"time_limit": 3}, ()), ({"time_limit": 500}, ("--time-limit", "3"))]
)
def test_at_the_time_limit_the_reports_say_what_had_finished(
    tmp_path: Path, command: Command, config: Any, arguments: tuple[str, ...]
) -> None:
    project(tmp_path, "a", "slow", "b", **config)
    ended = command("run", *arguments)
    assert ended.status == 3, ended.text
    assert verdict_of(ended.out) == "unproven: interrupted: the time limit was reached: 1 of 3 cases did not finish"
    results = results_in(tmp_path)
    assert not results.run.complete
    assert statuses(results) == {"a": "passed", "slow": "error", "b": "passed"}
    assert results.cases()[1][1].iterations[0].turns[0].error == "not run: the time limit was reached"
    assert "your agent failed" not in ended.text
    reports = {path.name for path in (tmp_path / "agenteval-report").iterdir()}
    assert reports >= {"comment.md", "junit.xml", "summary.md", "report.html"}


def test_errors_that_may_be_do_not_fail_a_run_that_reached_its_time_limit(tmp_path: Path, command: Command) -> None:
    names = [f"c{number}" for number in range(30)]
    project(tmp_path, *names, "slow", gate={"fail_on": ["failures"]})
    ended = command("run", "--time-limit", "3")
    assert ended.status == 0, ended.text


def test_an_agent_that_was_never_asked_did_not_fail(tmp_path: Path, command: Command) -> None:
    project(tmp_path, "a", "b")
    ended = command("run", "--time-limit", "0.000001")
    assert ended.status == 3, ended.text
    assert "the time limit was reached" in ended.text
    assert "your agent failed" not in ended.text


def test_the_turns_of_a_case_share_its_time(tmp_path: Path, command: Command) -> None:
    project(tmp_path, "a", "slow", "b", case_timeout=1.5)
    assert command("run").status == 3
    results = results_in(tmp_path)
    assert statuses(results) == {"a": "passed", "slow": "error", "b": "passed"}
    assert results.cases()[1][1].iterations[0].turns[0].error == "no answer within the 1.5 s of the case"


def test_further_attempts_are_counted_and_told(tmp_path: Path, command: Command) -> None:
    seen: set[str] = set()

    def respond(body: dict[str, Any]) -> Answer:
        if body["case"] != "well" and body["session"] not in seen:
            seen.add(body["session"])
            return Answer("later", status=503)
        return Answer({"response": body["input"]})

    with serving(respond) as service:
        project(tmp_path, "a", "well", "b", agent={"http": service.url})
        ended = command("run", "--iterations", "2")
    assert ended.status == 0, ended.text
    said = "4 turns were retried after a transient failure (4 retries); 4 got an answer"
    assert f"warning: {said}" in ended.out
    retries = {
        found.name: [each.turns[0].retries for each in found.iterations] for _, found in results_in(tmp_path).cases()
    }
    assert retries == {"a": [1, 1], "well": [0, 0], "b": [1, 1]}
    text = (tmp_path / "agenteval-report" / "results.json").read_text(encoding="utf-8")
    # Left out where there were none.
    assert text.count('"retries"') == 4


# Chance

ANSWERS = """
import random, time
def reply(request):
    time.sleep(random.random() / 50)
    return "wrong" if request["session"].split("::")[1] in ("3#0", "7#1", "7#2") else request["input"]
"""


def test_the_same_seed_gives_the_same_results(tmp_path: Path, command: Command) -> None:
    names = [str(number) for number in range(20)]
    project(tmp_path, *names, agent=python_agent(tmp_path, ANSWERS))
    for out in ("one", "two"):
        command("run", "--iterations", "3", "--concurrency", "8", "--seed", "5", "--out", out)
    first, second = read_results(tmp_path / "one"), read_results(tmp_path / "two")
    assert said(first) == said(second)
    assert first.run.seed == second.run.seed == 5
    assert [found.name for _, found in first.cases()] == names


def test_without_a_seed_none_is_recorded(tmp_path: Path, command: Command) -> None:
    project(tmp_path, "a")
    assert command("run").status == 0
    assert '"seed"' not in (tmp_path / "agenteval-report" / "results.json").read_text(encoding="utf-8")


# Iterations

NOTES = """
def reply(request):
    with open("asked.log", "a") as log:
        log.write(request["session"] + "\\n")
    return request["input"]
"""
CONSISTENT = """
[eval]
description = "Says the same."
type = "accuracy"
iterations = 4
targets.agents = ["*"]

[[eval.cases]]
prompt = "hello"
output = "hello"
"""


@pytest.mark.parametrize(("arguments", "own", "general"), [((), 4, 2), (("--iterations", "3"), 3, 3)])
def test_how_often_is_said_by_the_command_line_the_suite_or_the_configuration(
    tmp_path: Path,
    command: Command,
    arguments: tuple[str, ...],
    own: int,
    general: int,
) -> None:
    project(tmp_path, "a", agent=python_agent(tmp_path, NOTES), iterations=2)
    (tmp_path / ".agentci" / "evals").mkdir(parents=True)
    (tmp_path / ".agentci" / "evals" / "same.toml").write_text(CONSISTENT, encoding="utf-8")
    ended = command("run", *arguments)
    assert ended.status == 0, ended.text
    found = {suite.format: len(item.iterations) for suite, item in results_in(tmp_path).cases()}
    assert found == {"holodeck": general, "agentci": own}
    sessions = (tmp_path / "asked.log").read_text(encoding="utf-8").split()
    assert len(set(sessions)) == len(sessions) == own + general
