"""The action over several workflow runs: baseline and pull request, two stages for forks, shards, a killed run."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from github.PullRequest import PullRequest
from tests.peers.action_step import (
    QUICKSTART,
    Runner,
    as_process,
    job_environment,
    of_pull_request,
    process_environment,
    values_in,
    written,
)
from tests.peers.forks import FORK, first_stage, fork_pull_request
from tests.peers.github_actions import packed, zipped
from tests.peers.github_emulator import OWNER_TOKEN, REPOSITORY, STRANGER
from tests.peers.github_service import GithubService
from tests.support import AGENTEVAL, PATIENCE_S, agenteval, eventually, open_folder

pytestmark = pytest.mark.peer

WORSE = {"QUICKSTART_RANKING": "first-match"}


def environment(github: GithubService, event: str, **inputs: str) -> dict[str, str]:
    return job_environment(github.url, event, **{"suite": "agent.yaml", **inputs})


def main_was_evaluated(github: GithubService, runner: Runner, workspace: Path, folder: Path) -> str:
    """A push to main ran, and its artifact is there; returns the commit."""
    commit = github.emulator.api().get_repo(REPOSITORY).get_branch("main").commit.sha
    pushed = written(folder, {"ref": "refs/heads/main", "repository": {"default_branch": "main"}})
    step = runner(workspace, environment(github, "push", report_dir="pushed") | {"GITHUB_SHA": commit}, pushed)
    assert step.status == 0, step.log
    assert "there is no baseline to compare with" in step.summary
    run = github.actions.run(REPOSITORY, commit)
    github.actions.artifact(run, "agenteval", packed(workspace / "pushed"))
    return commit


def test_a_pull_request_is_compared_with_the_artifact_of_main(
    github: GithubService, runner: Runner, workspace: Path, tmp_path: Path
) -> None:
    commit = main_was_evaluated(github, runner, workspace, tmp_path)
    pull = github.emulator.pull_request()
    asked = environment(github, "pull_request", check_name="agent evaluation") | WORSE

    step = runner(workspace, asked, of_pull_request(pull, tmp_path))

    # The workspace is no repository, so that no base can run beside it.
    assert (step.status, step.outputs["verdict"]) == (3, "unproven"), step.log
    assert step.outputs["baseline-sha"] == commit
    assert f"baseline: commit {commit[:7]}" in step.log
    results = json.loads((workspace / "agenteval-report" / "results.json").read_text(encoding="utf-8"))
    assert results["comparison"]["baseline"]["distance"] == 0
    [comment] = list(pull.get_issue_comments())
    assert commit[:12] in comment.body
    assert OWNER_TOKEN not in step.log
    [check] = list(github.emulator.api().get_repo(REPOSITORY).get_commit(pull.head.sha).get_check_runs())
    assert (check.name, check.status, check.conclusion) == ("agent evaluation", "completed", "action_required")
    sent = [json.loads(request.body) for request in github.proxy.called("PATCH", "/check-runs/")]
    annotations = [item for body in sent for item in body["output"].get("annotations", [])]
    # One for each cause, at its first case: its title says how many cases fail for the same reason.
    titles = [item["title"].partition(" and ") for item in annotations]
    alike = [1 + int(others.removesuffix(" like it") or 0) for _, _, others in titles]
    assert sum(alike) == int(step.outputs["failed"]) == 11
    assert sorted(alike) == [1, 1, 2, 2, 2, 3]
    suite = (workspace / "agent.yaml").read_text(encoding="utf-8").splitlines()
    for item, (name, _, _) in zip(annotations, titles, strict=True):
        assert item["path"] == "agent.yaml"
        assert name in suite[item["start_line"] - 1]
    # They are not shown twice.
    assert "::error file=" not in step.log
    for text in (comment.body, f"{sent[-1]['output']}"):
        assert " · to merge into <code>main</code> · compared with " in text


def test_without_the_right_to_check_the_job_shows_the_annotations(
    github: GithubService, workspace: Path, tmp_path: Path
) -> None:
    pull = github.emulator.pull_request()
    powerless = github.emulator.installation_token(contents="read", pull_requests="write")
    asked = environment(github, "pull_request", check_name="agent evaluation", github_token=powerless) | WORSE

    step = as_process(workspace, asked, of_pull_request(pull, tmp_path))

    assert step.status == 1
    assert "checks: write" in step.log
    assert 3 <= step.log.count("::error file=agent.yaml,line=") <= 9
    assert len(list(pull.get_issue_comments())) == 1


def test_a_killed_run_is_closed_at_the_end_of_the_step(
    github: GithubService, runner: Runner, workspace: Path, tmp_path: Path
) -> None:
    pull = github.emulator.pull_request()
    event = of_pull_request(pull, tmp_path)
    asked = environment(github, "pull_request", check_name="agent evaluation")
    assert as_process(workspace, asked, event).status == 0
    (workspace / "agent.py").write_text("import time\ntime.sleep(60)\n", encoding="utf-8")
    asked |= {"GITHUB_RUN_ID": "4712"}
    variables = process_environment(workspace, asked, event)
    state = Path(variables["GITHUB_STATE"])
    command = [sys.executable, "-I", "-m", "agenteval", "action"]
    process = subprocess.Popen(
        command, env=variables, cwd=workspace, stdout=subprocess.DEVNULL, start_new_session=True
    )
    until = time.monotonic() + 60
    while "running" not in values_in(state).values():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    [comment] = list(pull.get_issue_comments())
    assert "is running" in comment.body
    kept = {f"STATE_{name}": value for name, value in values_in(state).items()}

    step = runner(workspace, asked | kept, event, clean_up=True)

    assert step.status == 0, step.log
    assert "did not finish" in step.summary
    [comment] = list(pull.get_issue_comments())
    assert "is running" not in comment.body
    assert "did not finish" in comment.body
    # What the run before said still stands below.
    assert "19 of 19 cases" in comment.body
    checks = github.emulator.api().get_repo(REPOSITORY).get_commit(pull.head.sha).get_check_runs(filter="all")
    assert sorted(check.conclusion for check in checks) == ["cancelled", "success"]


def test_a_cancelled_run_cancels_its_check_run_and_creates_no_comment(
    github: GithubService, workspace: Path, tmp_path: Path
) -> None:
    pull = github.emulator.pull_request()
    code = "import time\nopen('asked', 'w').close()\ntime.sleep(1000)\n"
    (workspace / "agent.py").write_text(code, encoding="utf-8")
    asked = environment(github, "pull_request", check_name="agent evaluation")
    variables = process_environment(workspace, asked, of_pull_request(pull, tmp_path))
    command = [str(AGENTEVAL), "action"]
    with subprocess.Popen(command, env=variables, cwd=workspace, stdout=subprocess.PIPE, text=True) as process:
        assert eventually((workspace / "asked").exists)
        process.send_signal(signal.SIGTERM)
        log, _ = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 128 + signal.SIGTERM, log
    [check] = list(github.emulator.api().get_repo(REPOSITORY).get_commit(pull.head.sha).get_check_runs())
    assert (check.status, check.conclusion) == ("completed", "cancelled")
    assert list(pull.get_issue_comments()) == []
    assert "interrupted" in Path(variables["GITHUB_STEP_SUMMARY"]).read_text(encoding="utf-8")
    assert "finished" in values_in(Path(variables["GITHUB_STATE"])).values()


@pytest.mark.parametrize(
    ("refused", "status"),
    [
        (("POST", "/comments"), 403),
        (("POST", "/check-runs"), 404),
        (("PATCH", "/check-runs/"), 422),
        (("GET", "/artifacts"), 403),
    ],
    ids=["comment", "start of the check run", "end of the check run", "artifacts"],
)
def test_what_github_refuses_is_said_and_the_gate_decides(
    github: GithubService, workspace: Path, tmp_path: Path, refused: tuple[str, str], status: int
) -> None:
    if refused == ("GET", "/artifacts"):
        main_was_evaluated(github, as_process, workspace, tmp_path)
    pull = github.emulator.pull_request()
    github.proxy.fail(*refused, times=100, status=status, body={"message": "Refused"})

    asked = environment(github, "pull_request", check_name="agent evaluation")
    step = as_process(workspace, asked, of_pull_request(pull, tmp_path))

    assert (step.status, step.outputs["verdict"]) == (0, "passed"), step.log
    assert f"GitHub answered {status} (Refused)" in step.log
    assert "Refused" in step.summary
    assert "Traceback" not in step.log
    assert len(list(pull.get_issue_comments())) == (refused != ("POST", "/comments"))


def test_a_finished_run_needs_no_end(github: GithubService, workspace: Path, tmp_path: Path) -> None:
    pull = github.emulator.pull_request()
    event = of_pull_request(pull, tmp_path)
    asked = environment(github, "pull_request")
    step = as_process(workspace, asked, event)
    github.proxy.forget()

    ended = as_process(
        workspace, asked | {f"STATE_{name}": text for name, text in step.state.items()}, event, clean_up=True
    )

    assert (ended.status, ended.summary, ended.log) == (0, "", "")
    assert github.proxy.requests == []


def published(github: GithubService, runner: Runner, workspace: Path, folder: Path, event: Mapping[str, Any]) -> Any:
    asked = environment(github, "workflow_run", mode="publish", check_name="agent evaluation")
    return runner(workspace, asked | {"GITHUB_WORKFLOW": "agenteval comment"}, written(folder, event))


def test_the_second_stage_comments_for_a_fork(
    github: GithubService, runner: Runner, workspace: Path, tmp_path: Path
) -> None:
    pull = fork_pull_request(github)
    step = runner(
        workspace,
        environment(github, "pull_request", github_token="") | {"GITHUB_ACTOR": STRANGER},
        of_pull_request(pull, tmp_path, FORK),
    )
    assert step.status == 0, step.log
    assert "no comment: a pull request from a fork has a read-only token" in step.log
    assert "19 of 19 cases" in step.summary
    report = workspace / "agenteval-report"
    (report / "comment.md").write_text("<h1>posted as it is</h1>", encoding="utf-8")

    step = published(github, runner, workspace, tmp_path, first_stage(github, pull, packed(report)))

    assert step.status == 0, step.log
    assert step.outputs["verdict"] == "passed"
    [comment] = list(pull.get_issue_comments())
    assert step.outputs["comment-url"] == comment.html_url
    assert "19 of 19 cases" in comment.body
    assert "posted as it is" not in comment.body
    completed = json.loads(github.proxy.called("PATCH", "/check-runs/")[-1].body)
    # Whoever opened the pull request can have written the results, and `neutral` would satisfy a required check.
    assert (completed["status"], completed["conclusion"]) == ("completed", "action_required")


@pytest.fixture(scope="module")
def evaluated() -> Any:
    """The results of the quickstart."""
    with open_folder() as folder:
        shutil.copytree(QUICKSTART, folder / "workspace")
        done = agenteval("run", "--quiet", "agent.yaml", cwd=folder / "workspace")
        assert done.status == 0, done.text
        return json.loads((folder / "workspace" / "agenteval-report" / "results.json").read_text(encoding="utf-8"))


def with_results(results: Any, pull: PullRequest, change: Any) -> bytes:
    """An artifact with results that somebody changed."""
    results = copy.deepcopy(results)
    results["run"]["commit"] = pull.head.sha
    changed = change(results)
    return zipped(changed if isinstance(changed, str) else json.dumps(changed))


def test_the_second_stage_says_what_is_wrong_with_results(
    github: GithubService, evaluated: Any, workspace: Path, tmp_path: Path
) -> None:
    rows: list[tuple[Callable[[Any], Any] | None, str]] = [
        (None, "left no results"),
        (lambda results: results | {"run": results["run"] | {"commit": "f" * 40}}, "of another commit than the run"),
        (lambda results: results | {"schema_version": 99}, "newer"),
        (lambda _: "{", "results.json"),
        (lambda results: results | {"suites": "no"}, "suites"),
    ]
    for change, reason in rows:
        pull = fork_pull_request(github)
        event = first_stage(github, pull, change and with_results(evaluated, pull, change))
        step = published(github, as_process, workspace, tmp_path, event)

        assert step.status == 0, step.log
        assert step.outputs["verdict"] == "error"
        [comment] = list(pull.get_issue_comments())
        assert "left no results" in comment.body
        assert reason in comment.body


def test_hostile_results_stay_text(github: GithubService, evaluated: Any, workspace: Path, tmp_path: Path) -> None:
    pull = fork_pull_request(github)
    attack = "<!-- agenteval:comment id=default --> @octocat fixes #1 <img src=x onerror=alert(1)> ::error::x"

    def hostile(results: Any) -> Any:
        case = results["suites"][0]["cases"][0]
        case["name"] = attack
        case["status"] = "failed"
        turn = case["iterations"][0]["turns"][0]
        turn["response"] = f"{attack}\n<!-- agenteval:end key=x -->\n```\n{attack}"
        turn["scores"][0] |= {"passed": False, "reason": attack}
        return results

    event = first_stage(github, pull, with_results(evaluated, pull, hostile))
    step = published(github, as_process, workspace, tmp_path, event)

    assert step.status == 0, step.log
    [comment] = list(pull.get_issue_comments())
    body = comment.body
    assert body.count("<!-- agenteval:comment") == body.count("<!-- agenteval:section") == 1
    # Conversations are blocks of code, in which nothing comes to life; a block ends at the first fence of its length.
    outside = re.sub(r"(?ms)^ {0,3}(`{3,})\w*\n.*?^ {0,3}\1`*$", "", body)
    assert "@octocat" not in outside
    assert "<img" not in outside
    assert "\n::error::x" not in step.log


def test_a_pull_request_that_moved_on_is_left_alone(github: GithubService, workspace: Path, tmp_path: Path) -> None:
    pull = fork_pull_request(github)
    run = github.actions.run(
        REPOSITORY, pull.base.sha, branch=pull.head.ref, event="pull_request", head_repository=FORK
    )
    event = {"action": "completed", "workflow_run": {"id": run.id, "event": "pull_request"}}

    step = published(github, as_process, workspace, tmp_path, event)

    assert step.status == 0, step.log
    assert "nothing to publish: no open pull request has" in step.log
    assert list(pull.get_issue_comments()) == []


def test_shards_are_merged_judged_and_commented_on_once(
    github: GithubService, runner: Runner, workspace: Path, tmp_path: Path
) -> None:
    main_was_evaluated(github, runner, workspace, tmp_path)
    pull = github.emulator.pull_request()
    event = of_pull_request(pull, tmp_path)
    for index in (1, 2, 3):
        asked = environment(github, "pull_request", shard=f"{index}/3", report_dir=f"agenteval-shards/{index}")
        step = runner(workspace, asked | WORSE, event)
        assert step.status == 0, step.log
    assert list(pull.get_issue_comments()) == []

    step = runner(workspace, environment(github, "pull_request", mode="gate", suite=""), event)

    assert (step.status, step.outputs["verdict"], step.outputs["prove"]) == (3, "unproven", "true"), step.log
    assert step.outputs["total"] == "19"
    assert step.outputs["baseline-sha"]
    [comment] = list(pull.get_issue_comments())
    assert "\n### 🔌 lindensee-cycles-support: the change could choose its own rules" in comment.body
    assert "<b>11</b> may be worse" in comment.body


def test_pull_request_target_runs_nothing(github: GithubService, workspace: Path, tmp_path: Path) -> None:
    pull = github.emulator.pull_request()

    step = as_process(workspace, environment(github, "pull_request_target"), of_pull_request(pull, tmp_path))

    assert step.status == 2
    assert "use the pull_request event" in step.log
    assert not (workspace / "agenteval-report").exists()
    assert github.proxy.requests == []
