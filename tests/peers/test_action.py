"""The whole action on a pull request: as a process, and in the image if one was built."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from github.PullRequest import PullRequest
from tests.command_client import read_at_start
from tests.peers.action_step import Runner, process_environment, step_of
from tests.peers.github_emulator import OWNER_TOKEN, REPOSITORY, GithubEmulator
from tests.support import agenteval

pytestmark = pytest.mark.peer


def _event(pull: PullRequest, folder: Path) -> Path:
    payload = {
        "action": "synchronize",
        "number": pull.number,
        "pull_request": {
            "number": pull.number,
            "head": {"sha": pull.head.sha, "ref": pull.head.ref, "repo": {"full_name": REPOSITORY, "fork": False}},
            "base": {"sha": pull.base.sha, "ref": "main", "repo": {"full_name": REPOSITORY}},
        },
        "repository": {"full_name": REPOSITORY},
    }
    path = folder / "event.json"
    path.write_text(json.dumps(payload), encoding="utf-8")
    return path


def _environment(emulator: GithubEmulator, **inputs: str) -> dict[str, str]:
    named = {f"INPUT_{name.upper().replace('_', '-')}": value for name, value in inputs.items()}
    return {
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_API_URL": emulator.url,
        "GITHUB_ACTOR": "octocat",
        "GITHUB_RUN_ID": "4711",
        "GITHUB_REF": "refs/pull/1/merge",
        "INPUT_GITHUB-TOKEN": OWNER_TOKEN,
        "INPUT_SUITE": "agent.yaml",
        **named,
    }


def test_one_comment_is_created_and_then_edited(
    emulator: GithubEmulator, runner: Runner, workspace: Path, tmp_path: Path
) -> None:
    pull = emulator.pull_request()
    event = _event(pull, tmp_path)

    first = runner(workspace, _environment(emulator, report_dir="before"), event)

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
    second = runner(workspace, _environment(emulator, baseline="before/results.json") | worse, event)

    # The workspace is no repository, so that no base can run beside it.
    assert (second.status, second.outputs["verdict"]) == (3, "unproven"), second.log
    assert second.outputs["regressions"] == "0"
    [edited] = list(pull.get_issue_comments())
    assert edited.id == created.id
    assert "\n### 🔌 lindensee-cycles-support: 11 cases, f1&#95;score" in edited.body
    assert "trekking-bike-two-days" in edited.body
    assert "36.00" in edited.body
    assert "29.00" in edited.body
    assert OWNER_TOKEN not in first.log + second.log
    assert (workspace / "agenteval-report" / "junit.xml").exists()


def test_what_cannot_run_is_reported_in_the_same_comment(
    emulator: GithubEmulator, runner: Runner, workspace: Path, tmp_path: Path
) -> None:
    pull = emulator.pull_request()
    event = _event(pull, tmp_path)
    suite = workspace / "agent.yaml"
    suite.write_text(suite.read_text(encoding="utf-8").replace("ground_truth:", "groundtruth:", 1), encoding="utf-8")

    step = runner(workspace, _environment(emulator), event)

    assert step.status == 2, step.log
    assert step.outputs["verdict"] == "error"
    assert "did you mean" in step.summary
    [comment] = list(pull.get_issue_comments())
    assert "groundtruth" in comment.body
    assert "::error file=" in step.log


def test_without_the_right_to_comment_the_gate_stands(
    emulator: GithubEmulator, runner: Runner, workspace: Path, tmp_path: Path
) -> None:
    pull = emulator.pull_request()
    event = _event(pull, tmp_path)
    powerless = emulator.installation_token(contents="read")

    step = runner(workspace, _environment(emulator, github_token=powerless), event)

    assert step.status == 0, step.log
    assert "pull-requests: write" in step.log
    assert list(pull.get_issue_comments()) == []
    assert powerless not in step.log


def test_the_command_line_does_the_same(emulator: GithubEmulator, workspace: Path, tmp_path: Path) -> None:
    pull = emulator.pull_request()
    variables = process_environment(workspace, _environment(emulator), _event(pull, tmp_path))
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
