"""Suites of one run, each with its own configuration: who answers, with which variables, judged by whom."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.integration.model_server import error, serving
from tests.mistakes import shown
from tests.support import EQUALITY, Ended, case, results_in, statuses, write_suite

TEAMS = ("support", "shop")
# Answers with the name of its team, if it got the variable of this team and no other.
AGENT = """
import os, sys
def reply(request):
    keys = sorted(name for name in os.environ if name.endswith("_KEY"))
    return f"{os.path.basename(os.path.dirname(__file__))} {' '.join(keys)}"
"""
GRADERS = """
import os
import re
def keys(context):
    found = sorted(name for name in os.environ if name.endswith("_KEY"))
    return found == [context.ground_truth.split()[1]]
"""
CALLS: Mapping[str, Mapping[str, Any]] = {
    "python": {"python": "agent:reply", "interpreter": sys.executable},
    "command": {"command": [sys.executable, "-c", "import agent; print(agent.reply(None), end='')"]},
}


def team(folder: Path, name: str, how: Mapping[str, Any], **keys: Any) -> None:
    place = folder / name
    place.mkdir()
    (place / "agent.py").write_text(AGENT, encoding="utf-8")
    (place / "graders.py").write_text(GRADERS, encoding="utf-8")
    metrics = [{"type": "standard", "metric": "equality"}, {"type": "code", "grader": "graders:keys"}]
    cases = [case(f"{name}-{index}", ground_truth=f"{name} {name.upper()}_KEY") for index in range(2)]
    write_suite(place, cases, evaluations={"metrics": metrics})
    config = {"agents": {"default": how}, "pass_env": [f"{name.upper()}_KEY"], **keys}
    (place / "agenteval.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    # On a person's machine, user code gets every variable.
    monkeypatch.setenv("CI", "true")
    for name in TEAMS:
        monkeypatch.setenv(f"{name.upper()}_KEY", f"sk-{name}-0123456789")
    monkeypatch.setenv("OTHER_KEY", "sk-other-0123456789")
    return tmp_path


PASSED = {f"{name}-{index}": "passed" for name in TEAMS for index in range(2)}


@pytest.mark.parametrize("how", CALLS)
def test_each_suite_is_answered_and_graded_with_its_configuration(
    how: str, repository: Path, command: Command
) -> None:
    for name in TEAMS:
        team(repository, name, CALLS[how])
    ended = command("run", *TEAMS)
    assert ended.status == 0, ended.text
    assert statuses(results_in(repository)) == PASSED
    assert command("validate", *TEAMS).status == 0
    # The shards of the run, and an interrupted run, come to the same.
    for index in (1, 2):
        assert command("run", *TEAMS, "--shard", f"{index}/2", "--out", f"part-{index}").status == 0
    assert command("merge", "part-1", "part-2", "-o", "merged").status == 0
    journal = repository / "agenteval-report" / "journal.jsonl"
    lines = journal.read_text(encoding="utf-8").splitlines(keepends=True)
    journal.write_text("".join(lines[:3]), encoding="utf-8")
    assert command("run", *TEAMS, "--resume").status == 0
    assert statuses(results_in(repository)) == PASSED


def failing(repository: Path, command: Command) -> Ended:
    for name in TEAMS:
        team(repository, name, {"command": ["false"]})
    return command("run", *TEAMS)


def test_a_hint_names_the_configuration_that_can_pass_a_variable(repository: Path, command: Command) -> None:
    ended = failing(repository, command)
    assert ended.status == 3
    for name, other in (TEAMS, TEAMS[::-1]):
        hint = (
            rf"not passed [^;]*{other.upper()}_KEY[^;]*; list what they need in `pass_env` of {name}/agenteval\.yaml"
        )
        assert re.search(hint, " ".join(ended.out.split())), ended.out


OLLAMA = {"provider": "ollama", "name": "llama3", "endpoint": "http://127.0.0.1:1"}
GEVAL = {
    "type": "geval",
    "name": "quality",
    "criteria": "good",
    "threshold": 0.5,
    "fail_on_error": True,
    "model": OLLAMA,
}
GRADER = {"type": "code", "grader": "graders:broken", "fail_on_error": True}


@pytest.mark.long
@pytest.mark.parametrize(
    ("agent", "metric", "value", "is_hinted"),
    [
        ({"command": ["false"]}, EQUALITY, "sk-1234567890", True),
        ({"command": ["false"]}, EQUALITY, "", False),
        ({"command": ["/bin/echo", "hello"]}, GRADER, "sk-1234567890", True),
        # The judge has the key; the agent did not fail.
        ({"command": ["/bin/echo", "hello"]}, GEVAL, "sk-1234567890", False),
        ({"http": "http://127.0.0.1:1/", "retries": 0}, EQUALITY, "sk-1234567890", False),
        ({"replay": "answers.jsonl"}, EQUALITY, "sk-1234567890", False),
    ],
)
def test_only_broken_user_code_is_a_reason_for_the_hint(
    *,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: Command,
    agent: Any,
    metric: Any,
    value: str,
    is_hinted: bool,
) -> None:
    monkeypatch.setenv("CI", "true")
    for name in ("OPENAI_API_KEY", "TEAM_API_KEY"):
        monkeypatch.setenv(name, value)
    (tmp_path / "graders.py").write_text("def broken(context):\n    raise KeyError\n", encoding="utf-8")
    recorded = {"case": "a", "error": "it was down"}
    (tmp_path / "answers.jsonl").write_text(json.dumps(recorded) + "\n", encoding="utf-8")
    write_suite(tmp_path, [case("a")], evaluations={"metrics": [metric]})
    config = {"agents": {"default": agent}, "judge": "openai/gpt-4.1"}
    (tmp_path / "agenteval.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")

    with serving() as judge:
        judge.script(error(401, "no such key"))
        monkeypatch.setenv("OPENAI_BASE_URL", f"{judge.url}/v1")
        ended = command("run", "agent.yaml")

    assert ended.status == 3, ended.text
    hint = r"not passed [^;]*TEAM_API_KEY[^;]*; list what they need in `pass_env`"
    assert bool(re.search(hint, " ".join(ended.out.split()))) is is_hinted, ended.text


def test_a_changed_judge_of_one_suite_is_named_when_a_run_is_resumed(repository: Path, command: Command) -> None:
    for name in TEAMS:
        team(repository, name, CALLS["python"], judge="openai/one", case_timeout=10)
    assert command("run", *TEAMS).status == 0
    config = yaml.safe_load((repository / "shop" / "agenteval.yaml").read_text(encoding="utf-8"))
    config |= {"judge": "openai/two", "case_timeout": 20}
    (repository / "shop" / "agenteval.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    ended = command("run", *TEAMS, "--resume")
    assert ended.status == 2
    assert "the judge of shop/agent.yaml was openai/one, now openai/two" in ended.err
    assert "case_timeout of shop/agent.yaml was 10, now 20" in ended.err
    assert "support/agent.yaml" not in ended.err


def test_each_suite_has_its_recording_and_time_limit(repository: Path, command: Command) -> None:
    for name in TEAMS:
        team(repository, name, {"replay": "answers.jsonl"})
        answer = {"case": f"{name}-0", "response": f"{name} {name.upper()}_KEY"}
        second = {"case": f"{name}-1", "response": f"{name} {name.upper()}_KEY"}
        text = f"{json.dumps(answer)}\n{json.dumps(second)}\n"
        (repository / name / "answers.jsonl").write_text(text, encoding="utf-8")
    assert command("run", *TEAMS).status == 0
    assert statuses(results_in(repository)) == PASSED
    (repository / "shop" / "agent.py").write_text(f"import time\ntime.sleep(60)\n{AGENT}", encoding="utf-8")
    config = {"agents": {"default": CALLS["command"]}, "pass_env": ["SHOP_KEY"], "case_timeout": 1}
    (repository / "shop" / "agenteval.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    assert command("run", *TEAMS).status == 3
    found = statuses(results_in(repository))
    assert found == {**PASSED, "shop-0": "error", "shop-1": "error"}


def test_the_same_mistake_in_several_files_is_said_once(repository: Path, command: Command) -> None:
    for name in ("a", "b", "c"):
        (repository / name).mkdir()
        write_suite(repository / name, [case("x")], nmae=1)
    write_suite(repository / "a", [{"name": "x", "input": "y"}, {"inptu": "y"}, {"inptu": "y"}], nmae=1)
    ended = command("run", "a", "b", "c")
    by_title = {mistake.title: mistake for mistake in shown(ended.err)}
    assert by_title["unknown key 'nmae'; did you mean 'name'?"].more == 2
    assert by_title["unknown key 'inptu'; did you mean 'input'?"].more == 1
    assert " places; nothing was run (exit status 2)" in ended.err.splitlines()[-1]
