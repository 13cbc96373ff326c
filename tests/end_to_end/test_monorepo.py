"""Three agents of one repository, with suites in different formats: in one job, and in a job for each suite."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.end_to_end.test_action import Runner
from tests.git_server import commit, git
from tests.support import PYTHON, ROOT, agenteval, environment, open_folder, results_in

from agenteval.results.model import Results
from agenteval.results.store import read_results

FORMATS = {"desk": "agentci", "search": "fluxloop", "shop": "holodeck"}
SUITES = {
    "desk": "agents/desk/.agentci/evals/answers.toml",
    "search": "agents/search/configs/evaluation.yaml",
    "shop": "agents/shop/agent.yaml",
}
# Signs each answer: with its variable, the file beside it, and the .env of its working directory.
SIGNED = """
import os, pathlib
unsigned = reply
def reply(request):
    name = pathlib.Path(__file__).parent.name
    signature = [os.environ["TEAM"], name, pathlib.Path(".env").read_text().strip()]
    return {"response": unsigned(request)["response"] + " -- " + " ".join(signature)}
"""


def monorepo(root: Path) -> None:
    """Write three projects with the starters of their formats."""
    (root / ".git").mkdir(exist_ok=True)
    for name, suite_format in FORMATS.items():
        started = agenteval("init", f"agents/{name}", "--format", suite_format, "--agent", "python", cwd=root)
        assert started.status == 0, started.err
        settings = root / "agents" / name / "agenteval.yaml"
        how = f"    interpreter: {PYTHON}\n    env: {{TEAM: team-{name}}}\n"
        settings.write_text(settings.read_text(encoding="utf-8").rstrip() + "\n" + how, encoding="utf-8")
    # A pattern leaves it out.
    (root / "agents" / "README.md").write_text("Three agents.\n", encoding="utf-8")


def signed_monorepo(root: Path) -> None:
    """Write three projects whose agents sign their answers."""
    monorepo(root)
    for name in FORMATS:
        agent = root / "agents" / name / "agent.py"
        agent.write_text(agent.read_text(encoding="utf-8").partition("\n\nif __name__")[0] + SIGNED, encoding="utf-8")
        (root / "agents" / name / ".env").write_text(f"env-of-{name}\n", encoding="utf-8")


def signatures(results: Results) -> dict[str, set[str]]:
    """Return the signatures of the answers of each suite."""
    found: dict[str, set[str]] = {}
    for suite, case in results.cases():
        answers = [turn.response or "" for iteration in case.iterations for turn in iteration.turns]
        found.setdefault(suite.path, set()).update(answer.rpartition(" -- ")[2] for answer in answers)
    return found


EXPECTED = {path: {f"team-{name} {name} env-of-{name}"} for name, path in SUITES.items()}


def projects(*names: str) -> list[str]:
    return [f"agents/{name}" for name in names]


@pytest.mark.parametrize("suites", [["agents/**"], ["agents/s*", "agents/d?sk"], [*SUITES.values()]])
def test_each_suite_is_answered_by_the_agent_of_its_directory(
    suites: list[str], tmp_path: Path, command: Command
) -> None:
    signed_monorepo(tmp_path)

    ended = command("run", "--iterations", "1", "--fail-on", "none", *suites)

    assert ended.status == 0, ended.text
    assert signatures(results_in(tmp_path)) == EXPECTED


def test_the_list_has_every_suite(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    signed_monorepo(tmp_path)
    (tmp_path / "node_modules" / "x").mkdir(parents=True)
    (tmp_path / "node_modules" / "x" / "agent.yaml").touch()

    listed = json.loads(command("list", "--json").out)

    assert [suite["path"] for suite in listed] == [*SUITES.values()]
    assert [suite["format"] for suite in listed] == [*FORMATS.values()]
    assert [suite["directory"] for suite in listed] == projects(*FORMATS)
    assert [suite["id"] for suite in listed] == [
        "agents-desk-.agentci-evals-answers",
        "agents-search-configs-evaluation",
        "agents-shop-agent",
    ]
    for suite in listed:
        run = command("run", suite["path"], "--iterations", "1", "--fail-on", "none", "--out", suite["id"])
        assert run.status == 0, run.text
        assert len(list(read_results(tmp_path / suite["id"]).cases())) == suite["cases"]
    # Paths are those for a run in the same directory.
    monkeypatch.chdir(tmp_path / "agents" / "shop")
    assert command("list").out == "agent.yaml (shop-assistant): holodeck, 6 cases\n"
    assert json.loads(command("list", "--json", "../desk").out)[0]["path"] == "../desk/.agentci/evals/answers.toml"


def test_a_link_out_of_the_repository_is_not_followed(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "repository"
    (home / ".git").mkdir(parents=True)
    signed_monorepo(home)
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(home / "agents" / "shop" / "agent.yaml", tmp_path / "elsewhere" / "agent.yaml")
    (home / "agents" / "far").symlink_to(tmp_path / "elsewhere")
    (home / "agents" / "near").symlink_to(home / "agents" / "shop")
    monkeypatch.chdir(home)

    listed = command("list", "--json", "agents/*")

    assert listed.status == 0
    assert [suite["path"] for suite in json.loads(listed.out)] == [*SUITES.values()]
    assert "warning: agents/far/agent.yaml: a link leads out of the repository" in listed.err
    alone = command("list", "--json", "agents/far")
    assert (alone.status, alone.out) == (2, "")
    assert "a link leads out of the repository" in alone.err
    variables = {"GITHUB_WORKSPACE": str(home), "INPUT_SUITE": "agents/far"}
    action = agenteval("action", cwd=home, env=environment(**variables))
    assert action.status == 2, action.text
    assert "it is outside of the directories that may be read" in action.text


def steps_of(name: str) -> list[dict[str, Any]]:
    workflow = yaml.safe_load((ROOT / "examples" / "workflows" / name).read_text(encoding="utf-8"))
    steps: list[dict[str, Any]] = workflow["jobs"]["evaluate"]["steps"]
    return steps


@pytest.fixture
def runner(nothing_there: str) -> Iterator[Runner]:
    with open_folder() as folder:
        yield Runner(folder, nothing_there)


def test_the_workflow_with_one_job(runner: Runner) -> None:
    signed_monorepo(runner.workspace)
    *_, ours, upload = steps_of("monorepo.yml")

    step = runner.step(inputs=ours["with"], baseline="none", fail_on="none")
    assert step.ended.status == 0, step.ended.text
    assert signatures(read_results(runner.workspace / upload["with"]["path"])) == EXPECTED


@pytest.mark.long
def test_the_workflow_with_a_job_for_each_suite(runner: Runner) -> None:
    signed_monorepo(runner.workspace)
    listed = json.loads(agenteval("list", "--json", "agents/*", cwd=runner.workspace).out)
    *_, ours, upload = steps_of("monorepo-matrix.yml")
    found: dict[str, set[str]] = {}

    for suite in listed:
        inputs = {name: filled(value, suite) for name, value in ours["with"].items() if name != "cache-key"}
        step = runner.step(inputs=inputs, baseline="none", fail_on="none")
        assert step.ended.status == 0, step.ended.text
        assert inputs["baseline-artifact"] == filled(upload["with"]["name"], suite)
        found |= signatures(read_results(runner.workspace / upload["with"]["path"]))

    assert found == EXPECTED


def filled(text: str, suite: dict[str, Any]) -> str:
    """Return a text with the expressions of a leg of the matrix replaced."""
    for key, value in suite.items():
        text = text.replace(f"${{{{ matrix.suite.{key} }}}}", str(value))
    assert "${{" not in text
    return text


def test_a_pattern_is_judged_by_the_suites_of_the_base_commit(tmp_path: Path, command: Command) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    monorepo(tmp_path)
    commit(tmp_path)
    options = ("--iterations", "1", "agents/*")
    assert command("run", *options, "--out", "agenteval-report/before").status == 0
    # The agent becomes worse, and its suite expects it.
    for name in ("agent.py", "agent.yaml"):
        file = tmp_path / "agents" / "shop" / name
        worse = file.read_text(encoding="utf-8").replace("two working days", "a month or so")
        file.write_text(worse, encoding="utf-8")

    ended = command("run", *options, "--baseline", "agenteval-report/before")

    assert ended.status == 1, ended.text
    edited = [difference for difference in results_in(tmp_path).run.integrity if difference.kind == "edited"]
    assert {(difference.case or "").partition("::")[0] for difference in edited} == {SUITES["shop"]}
