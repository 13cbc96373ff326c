"""Finds the fork's workflow run to publish, and its pull requests.

The fork's run had no permissions, and everything it produced is untrusted. The pull requests therefore come from
GitHub, never from an event or a file, and only validated results are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agenteval.ci.github.api.client import Client
from agenteval.ci.github.api.jobs import Execution, executions_of
from agenteval.core.errors import ConfigError, Kind, Problem

if TYPE_CHECKING:
    from github.PullRequest import PullRequest
    from github.Repository import Repository
    from github.WorkflowRun import WorkflowRun

PERMISSIONS = ("actions: read", "contents: read", "pull-requests: read")


@dataclass(frozen=True, slots=True)
class OpenPullRequest:
    """A pull request that is open; ``base`` is the commit of the base branch that GitHub records for it."""

    number: int
    base: str


@dataclass(frozen=True, slots=True)
class FirstStage:
    """The fork's workflow run.

    Attributes:
        run_id: its id.
        attempt: number of the attempt.
        url: its address.
        commit: the head commit it ran for.
        from_fork: whether the commit is in another repository.
        workflow: path of its workflow file; of several ones with the same name, each has another path.
        pull_requests: the open pull requests with this head commit.
        executions: its jobs, in all attempts; empty if they are unknown.
    """

    run_id: int
    attempt: int
    url: str
    commit: str
    from_fork: bool
    workflow: str
    pull_requests: tuple[OpenPullRequest, ...]
    executions: tuple[Execution, ...] = ()


def first_stage(client: Client, repository: str, run_id: int) -> FirstStage:
    """Ask GitHub about a workflow run.

    Args:
        client: connection to GitHub.
        repository: ``owner/name`` of the repository whose workflow it is.
        run_id: the run.

    Raises:
        GithubError: GitHub refused, failed or could not be reached.
        ConfigError: the event of the run has no pull request.
    """
    with client.open(f"read workflow run {run_id} of {repository}", PERMISSIONS) as api:
        place = api.get_repo(repository)
        run = place.get_workflow_run(run_id)
        if run.event != "pull_request":
            raise ConfigError(
                Problem(
                    f"workflow run {run_id} is of the event {run.event!r}, not of a pull request", kind=Kind.GITHUB
                )
            )
        head = run.head_repository.full_name if run.head_repository else None
        pulls = tuple(OpenPullRequest(pull.number, pull.base.sha) for pull in _pull_requests(place, run))
        return FirstStage(
            run_id=run.id,
            attempt=run.run_attempt or 1,
            url=run.html_url,
            commit=run.head_sha,
            from_fork=head is None or head.casefold() != repository.casefold(),
            workflow=(run.path or "").partition("@")[0],
            pull_requests=pulls,
            executions=executions_of(api, repository, run_id) if pulls else (),
        )


def _pull_requests(repository: Repository, run: WorkflowRun) -> Iterator[PullRequest]:
    """Return the open pull requests of the run's branch with its head commit."""
    owner = run.head_repository.owner.login if run.head_repository else None
    if owner is None:
        return
    for pull in repository.get_pulls(state="open", head=f"{owner}:{run.head_branch}"):
        if pull.head.sha == run.head_sha and pull.base.repo.full_name == repository.full_name:
            yield pull
