"""The jobs of a workflow run, and which of them this process belongs to."""

from __future__ import annotations

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

    @property
    def is_done(self) -> bool:
        return self.status == "completed"


class _Jobs(BaseModel):
    total_count: int
    jobs: list[_Job]


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
            jobs = _all(api, f"/repos/{repository}/actions/runs/{run_id}/jobs")
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


def _all(api: Github, path: str) -> list[_Job]:
    """Return the jobs of all attempts: a repeated attempt need not list the jobs that it does not repeat."""
    found: list[_Job] = []
    for page in range(1, _PAGES + 1):
        sent = {"filter": "all", "per_page": str(_PER_PAGE), "page": str(page)}
        answer: Any
        _, answer = api.requester.requestJsonAndCheck("GET", path, parameters=sent)
        listed = TypeAdapter(_Jobs).validate_python(answer)
        found += listed.jobs
        if not listed.jobs or len(found) >= listed.total_count:
            break
    return found
