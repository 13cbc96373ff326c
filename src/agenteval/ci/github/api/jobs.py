"""The jobs of a workflow run, when they ran, and which of them this process belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from agenteval.ci.github.api.client import Client, GithubError
from agenteval.ci.github.comment.left_behind import Job, RunJobs

if TYPE_CHECKING:
    from github import Github

PERMISSIONS = ("actions: read",)
_PER_PAGE = 100
_PAGES = 10


class _Job(BaseModel):
    """A job as GitHub describes it; its id is also the id of its check run."""

    id: int
    name: str
    status: str
    conclusion: str | None = None
    html_url: str | None = None
    runner_name: str | None = None
    run_attempt: int = 1
    started_at: datetime | None = None
    completed_at: datetime | None = None

    @property
    def is_done(self) -> bool:
        return self.status == "completed"


class _Jobs(BaseModel):
    total_count: int
    jobs: list[_Job]


@dataclass(frozen=True)
class Execution:
    """A job in one attempt of a workflow run; the times are ``None`` if GitHub does not tell them.

    Attributes:
        job: name of the job.
        attempt: number of the attempt, from 1.
        began_at: when it began.
        ended_at: when it ended.
    """

    job: str
    attempt: int
    began_at: datetime | None
    ended_at: datetime | None

    def has(self, moment: datetime) -> bool:
        """Return whether a moment is in this execution."""
        began, ended = self.began_at, self.ended_at
        return began is not None and ended is not None and began <= moment <= ended


def executions_of(api: Github, repository: str, run_id: int) -> tuple[Execution, ...]:
    """Return the jobs of all attempts of a workflow run; nothing if there are too many, or GitHub does not tell them.

    Args:
        api: an open connection.
        repository: ``owner/name``.
        run_id: id of the workflow run.
    """
    from github import GithubException

    try:
        jobs, is_all = _listed(api, f"/repos/{repository}/actions/runs/{run_id}/jobs")
    except (GithubException, ValidationError):
        return ()
    if not is_all:
        return ()
    return tuple(Execution(job.name, job.run_attempt, job.started_at, job.completed_at) for job in jobs)


def end_of(executions: Sequence[Execution]) -> datetime | None:
    """Return when the last job ended; ``None`` if it is unknown."""
    ends = [execution.ended_at for execution in executions]
    known = [end for end in ends if end is not None]
    return max(known) if known and len(known) == len(ends) else None


def is_repeated(executions: Sequence[Execution], moment: datetime) -> bool:
    """Return whether each job that was at work at a moment ran again later, in another attempt.

    An attempt can repeat some jobs only. GitHub lists the others with their old times, or not at all.
    """
    newest = {execution.job: execution for execution in sorted(executions, key=lambda one: one.attempt)}
    working = [execution for execution in executions if execution.has(moment)]
    return bool(working) and all(
        newest[one.job].attempt > one.attempt and not newest[one.job].has(moment) for one in working
    )


def jobs_of_run(client: Client, repository: str, run_id: int, check_run_id: str, runner: str) -> RunJobs | None:
    """Return the jobs of a workflow run; ``None`` if GitHub does not tell them, or which of them is the own one.

    Args:
        client: connection to GitHub.
        repository: ``owner/name``.
        run_id: id of the workflow run.
        check_run_id: id of the own job; empty if the server does not tell it.
        runner: name of the runner, which has one job at a time.
    """
    try:
        with client.open(f"list the jobs of workflow run {run_id} of {repository}", PERMISSIONS) as api:
            jobs, _ = _listed(api, f"/repos/{repository}/actions/runs/{run_id}/jobs")
    except (GithubError, ValidationError):
        return None
    own = [job for job in jobs if str(job.id) == check_run_id]
    own = own or [job for job in jobs if runner and job.runner_name == runner and not job.is_done]
    if len(own) != 1:
        return None
    # A later attempt repeats the names of the earlier one.
    newest = {job.name: job for job in sorted(jobs, key=lambda job: job.id) if job.name != own[0].name}
    return RunJobs(own[0].name, tuple(map(_told, newest.values())))


def _told(job: _Job) -> Job:
    return Job(job.name, job.is_done, (job.conclusion or "") if job.is_done else "", job.html_url or "")


def _listed(api: Github, path: str) -> tuple[list[_Job], bool]:
    """Return the jobs of all attempts, and whether these are all: there can be too many.

    A repeated attempt need not list the jobs that it does not repeat.
    """
    found: list[_Job] = []
    for page in range(1, _PAGES + 1):
        sent = {"filter": "all", "per_page": str(_PER_PAGE), "page": str(page)}
        answer: Any
        _, answer = api.requester.requestJsonAndCheck("GET", path, parameters=sent)
        listed = TypeAdapter(_Jobs).validate_python(answer)
        found += listed.jobs
        if not listed.jobs or len(found) >= listed.total_count:
            return found, len(found) >= listed.total_count
    return found, False
