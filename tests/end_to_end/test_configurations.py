"""Suites of one run, each with its own configuration: who answers, with which variables, judged by whom."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.support import case, results_in, statuses, write_suite

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
