"""A comment that asks for the evaluation of a fork's commit, with the secrets of the repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from github.PullRequest import PullRequest
from tests.peers.action_step import as_process, job_environment, written
from tests.peers.forks import fork_pull_request
from tests.peers.github_emulator import OWNER, STRANGER
from tests.peers.github_service import GithubService

from agenteval.github.context import Context

pytestmark = pytest.mark.peer


@pytest.fixture(scope="module")
def pull(github_behind_proxy: GithubService) -> PullRequest:
    return fork_pull_request(github_behind_proxy)


def environment(github: GithubService, folder: Path, pull: PullRequest, event: dict[str, Any]) -> dict[str, str]:
    """The environment of a job that a comment starts, with the head of the pull request checked out."""
    (folder / "checkout" / ".git").mkdir(parents=True, exist_ok=True)
    (folder / "checkout" / ".git" / "HEAD").write_text(f"{pull.head.sha}\n", encoding="utf-8")
    return job_environment(github.url, "issue_comment") | {
        "GITHUB_EVENT_PATH": str(written(folder, event)),
        "GITHUB_SHA": pull.base.sha,
        "GITHUB_WORKSPACE": str(folder / "checkout"),
    }


def comment(pull: PullRequest, text: str, by: str = OWNER, action: str = "created") -> dict[str, Any]:
    body = text.replace("HEAD", pull.head.sha).replace("BASE", pull.base.sha)
    issue = {"number": pull.number, "pull_request": {"url": pull.url}}
    return {"action": action, "issue": issue, "comment": {"body": body, "user": {"login": by}}}


@pytest.mark.parametrize("text", ["/evaluate HEAD", "/evaluate   HEAD  \r\nI have read it."])
def test_a_maintainer_asks_for_the_reviewed_head(
    github: GithubService, tmp_path: Path, pull: PullRequest, text: str
) -> None:
    context = Context.read(environment(github, tmp_path, pull, comment(pull, text)))

    event = context.event
    assert not event.refused
    assert (event.commit, event.base_commit, event.base_ref) == (pull.head.sha, pull.base.sha, "main")
    assert event.is_proposed
    assert context.publisher is not None
    place = context.publisher.place
    assert (place.commit, place.pull_request, place.takes_checks) == (pull.head.sha, pull.number, True)


def test_nothing_runs_and_nothing_is_asked_without_the_command(
    github: GithubService, workspace: Path, tmp_path: Path, pull: PullRequest
) -> None:
    for text, action in {
        "/evaluate": "created",
        f"/evaluate {pull.head.sha[:12]}": "created",
        "/evaluate HEAD now": "created",
        "/evaluate HEAD": "edited",
    }.items():
        event = comment(pull, text, action=action)
        assert Context.read(environment(github, tmp_path, pull, event)).event.refused, text
    assert github.proxy.requests == []

    asked = environment(github, tmp_path, pull, comment(pull, "/evaluate HEAD", STRANGER))
    step = as_process(workspace, asked | {"GITHUB_WORKSPACE": str(workspace)}, tmp_path / "event.json")

    assert step.status == 2, step.log
    assert f"{STRANGER} may not write" in step.log
    assert not (workspace / "agenteval-report").exists()
    assert list(pull.get_issue_comments()) == []
