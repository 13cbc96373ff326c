"""Pull requests from forks, and the workflow runs that evaluate them without any permissions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from github.PullRequest import PullRequest
from tests.peers.github_actions import WORKFLOW
from tests.peers.github_emulator import REPOSITORY, STRANGER, STRANGER_TOKEN
from tests.peers.github_service import GithubService

FORK = f"{STRANGER}/widgets"


def fork_pull_request(github: GithubService) -> PullRequest:
    """An open pull request of somebody who may not write."""
    stranger = github.emulator.api(STRANGER_TOKEN)
    forks = [repository for repository in stranger.get_user().get_repos() if repository.full_name == FORK]
    fork = forks[0] if forks else stranger.get_repo(REPOSITORY).create_fork()
    branch = f"change-{fork.get_branches().totalCount}"
    fork.create_git_ref(f"refs/heads/{branch}", fork.get_branch("main").commit.sha)
    fork.create_file(f"{branch}.txt", "Change", "text", branch=branch)
    pulls = stranger.get_repo(REPOSITORY)
    return pulls.create_pull(base="main", head=f"{STRANGER}:{branch}", title=branch, body="")


def first_stage(
    github: GithubService,
    pull: PullRequest,
    data: bytes | None,
    head_repository: str = FORK,
    *,
    took: timedelta = timedelta(minutes=1),
    workflow: str = WORKFLOW,
) -> dict[str, Any]:
    """The run of the first stage, and the event that tells the second one of it."""
    run = github.actions.run(
        REPOSITORY,
        pull.head.sha,
        branch=pull.head.ref,
        event="pull_request",
        workflow=workflow,
        head_repository=head_repository,
    )
    github.actions.ended_job(run.id, "evaluate", run.created_at, took)
    if data is not None:
        github.actions.artifact(run, "agenteval", data)
    # What the event claims beyond the id must not matter.
    claims = {"id": run.id, "event": "pull_request", "head_sha": "0" * 40, "pull_requests": [{"number": 1}]}
    return {"action": "completed", "workflow_run": claims, "repository": {"full_name": REPOSITORY}}
