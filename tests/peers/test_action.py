"""The whole action on a pull request: as a process, and in the image if one was built."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.command_client import read_at_start
from tests.peers.action_step import Runner, job_environment, of_pull_request, process_environment, step_of
from tests.peers.github_emulator import OWNER_TOKEN
from tests.peers.github_service import GithubService
from tests.support import agenteval

pytestmark = pytest.mark.peer


def _environment(github: GithubService, **inputs: str) -> dict[str, str]:
    return job_environment(github.url, "pull_request", **{"suite": "agent.yaml", **inputs})


def test_one_comment_is_created_and_then_edited(
    github: GithubService, runner: Runner, workspace: Path, tmp_path: Path
) -> None:
    pull = github.emulator.pull_request()
    event = of_pull_request(pull, tmp_path)

    first = runner(workspace, _environment(github, report_dir="before"), event)

    assert first.status == 0, first.log
    assert first.outputs["verdict"] == "passed"
    assert first.outputs["total"] == first.outputs["passed"] == "19"
    assert first.outputs["results-path"] == "before/results.json"
    [created] = list(pull.get_issue_comments())
    assert first.outputs["comment-url"] == created.html_url
    assert "19" in first.summary
    results = json.loads((workspace / "before" / "results.json").read_text(encoding="utf-8"))
    assert results["run"]["commit"] == pull.head.sha

    worse = {"QUICKSTART_RANKING": "first-match"}
    second = runner(workspace, _environment(github, baseline="before/results.json") | worse, event)

    # The workspace is no repository, so that no base can run beside it.
    assert (second.status, second.outputs["verdict"]) == (3, "unproven"), second.log
    assert second.outputs["regressions"] == "0"
    [edited] = list(pull.get_issue_comments())
    assert edited.id == created.id
    assert "\n### ❌ lindensee-cycles-support: 11 cases, f1&#95;score" in edited.body
    assert "trekking-bike-two-days" in edited.body
    assert "36.00" in edited.body
    assert "29.00" in edited.body
    assert OWNER_TOKEN not in first.log + second.log
    assert (workspace / "agenteval-report" / "junit.xml").exists()


def test_what_cannot_run_is_reported_in_the_same_comment(
    github: GithubService, runner: Runner, workspace: Path, tmp_path: Path
) -> None:
    pull = github.emulator.pull_request()
    event = of_pull_request(pull, tmp_path)
    suite = workspace / "agent.yaml"
    suite.write_text(suite.read_text(encoding="utf-8").replace("ground_truth:", "groundtruth:", 1), encoding="utf-8")

    step = runner(workspace, _environment(github), event)

    assert step.status == 2, step.log
    assert step.outputs["verdict"] == "error"
    assert "did you mean" in step.summary
    [comment] = list(pull.get_issue_comments())
    assert "groundtruth" in comment.body
    assert "::error file=" in step.log


def test_without_the_right_to_comment_the_gate_stands(
    github: GithubService, runner: Runner, workspace: Path, tmp_path: Path
) -> None:
    pull = github.emulator.pull_request()
    event = of_pull_request(pull, tmp_path)
    powerless = github.emulator.installation_token(contents="read")

    step = runner(workspace, _environment(github, github_token=powerless), event)

    assert step.status == 0, step.log
    assert "pull-requests: write" in step.log
    assert list(pull.get_issue_comments()) == []
    assert powerless not in step.log


def test_the_command_line_does_the_same(github: GithubService, workspace: Path, tmp_path: Path) -> None:
    pull = github.emulator.pull_request()
    variables = process_environment(workspace, _environment(github), of_pull_request(pull, tmp_path))
    kept = {name: value for name, value in variables.items() if not name.startswith("INPUT_")}
    options = ("--github", "--baseline", "auto", "--comment", "always", "--check-name", "agent evaluation")
    env = read_at_start(os.environ) | kept | {"GITHUB_TOKEN": OWNER_TOKEN}

    done = agenteval("run", "agent.yaml", *options, cwd=workspace, env=env)

    step = step_of(done, Path(variables["GITHUB_OUTPUT"]).parent)
    assert step.status == 0, step.log
    [comment] = list(pull.get_issue_comments())
    assert (step.outputs["verdict"], step.outputs["comment-url"]) == ("passed", comment.html_url)
    assert "19 of 19" in step.summary
    [check] = list(pull.base.repo.get_commit(pull.head.sha).get_check_runs())
    assert (check.name, check.conclusion) == ("agent evaluation", "success")
    results = json.loads((workspace / step.outputs["results-path"]).read_text(encoding="utf-8"))
    assert results["run"]["commit"] == pull.head.sha
    assert OWNER_TOKEN not in step.log
