"""Trusted workflow runs of a branch or a pull request, their artifacts and jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

from pydantic import BaseModel

from agenteval.core.records import dataclass
from agenteval.github.client import GitHubClient, GithubError, ask

if TYPE_CHECKING:
    from github import Github


#: Events whose runs evaluate a state of the branch, the most frequent one first. Runs of pull requests are listed
#: under a branch if a fork's branch has the same name; the author of the pull request controls such a run. Other
#: events run for the default branch, but what they evaluate can come from anybody.
TRUSTED_EVENTS = ("push", "merge_group", "workflow_dispatch", "schedule")
_FOLDER = ".github/workflows/"
_PER_PAGE = 100
_RUN_PAGES = 2
# GitHub lists no more runs than these for a filter.
_MOST_LISTED = 1000


class _Repository(BaseModel):
    full_name: str


class WorkflowRun(BaseModel):
    """A workflow run; ``head_repository`` is ``None`` if the fork was deleted."""

    id: int
    event: str
    path: str
    head_branch: str | None
    head_sha: str
    status: str | None = None
    created_at: datetime
    run_started_at: datetime | None = None
    repository: _Repository
    head_repository: _Repository | None

    @property
    def began_at(self) -> datetime:
        """The start of its newest attempt."""
        return self.run_started_at or self.created_at

    @property
    def is_going_on(self) -> bool:
        """Return whether the run can still produce artifacts."""
        return self.status not in {None, "completed"}

    def is_of(self, repository: str) -> bool:
        """Return whether workflow and commit belong to this repository."""
        sides = (self.repository, self.head_repository)
        return all(side and side.full_name.casefold() == repository.casefold() for side in sides)


class Artifact(BaseModel):
    """An artifact of a run."""

    id: int
    name: str
    expired: bool
    created_at: datetime | None = None
    digest: str | None = None


class _Runs(BaseModel):
    total_count: int
    workflow_runs: list[WorkflowRun]


class _Artifacts(BaseModel):
    total_count: int
    artifacts: list[Artifact]


@dataclass(frozen=True)
class Workflow:
    """A workflow to search for runs of a branch."""

    api: Github
    repository: str
    file: str
    branch: str

    def runs_of(self, commit: str) -> list[WorkflowRun]:
        """Return the newest trusted runs of a commit, newest first."""
        listed = self._page(1, head_sha=commit).workflow_runs
        return self._trusted(run for run in listed if run.head_sha == commit)

    def trusted_runs(self, event: str, page: int) -> tuple[list[WorkflowRun], bool]:
        """Return a page of the trusted runs of an event, newest first, and whether there are more pages.

        Each event has a separate list, which runs of pull requests cannot fill.
        """
        # A merge queue uses temporary branches, so the branch's list does not contain its runs.
        of_branch = {} if event == "merge_group" else {"branch": self.branch}
        answer = self._page(page, event=event, **of_branch)
        more = bool(answer.workflow_runs) and page * _PER_PAGE < min(answer.total_count, _MOST_LISTED)
        return self._trusted(answer.workflow_runs), more

    def proposed_runs(self) -> list[WorkflowRun]:
        """Return the newest runs for pull requests of the branch, if it is in this repository; newest first.

        Branches of forks can have the same name, so their runs are left out.
        """
        listed = self._page(1, branch=self.branch, event="pull_request").workflow_runs
        runs = [
            run
            for run in listed
            if run.event == "pull_request" and run.head_branch == self.branch and self._is_of_workflow(run)
        ]
        return sorted(runs, key=lambda run: (run.began_at, run.id), reverse=True)

    def runs_proposing(self, commit: str) -> list[WorkflowRun]:
        """Return the runs for pull requests whose head is a commit, also in forks."""
        listed = self._page(1, head_sha=commit, event="pull_request").workflow_runs
        return [run for run in listed if run.head_sha == commit and run.event == "pull_request"]

    def _page(self, page: int, **query: str) -> _Runs:
        name = quote(self.file.rpartition("/")[2], safe="")
        path = f"/repos/{self.repository}/actions/workflows/{name}/runs"
        return ask(
            self.api, _Runs, path, **query, exclude_pull_requests="true", per_page=str(_PER_PAGE), page=str(page)
        )

    def _trusted(self, runs: Iterable[WorkflowRun]) -> list[WorkflowRun]:
        found = {run.id: run for run in runs if self._is_trusted(run)}
        return sorted(found.values(), key=lambda run: (run.created_at, run.id), reverse=True)

    def _is_trusted(self, run: WorkflowRun) -> bool:
        branch = run.head_branch or ""
        of_branch = branch == self.branch
        if run.event == "merge_group":
            of_branch = branch.startswith(f"gh-readonly-queue/{self.branch}/")
        return run.event in TRUSTED_EVENTS and of_branch and self._is_of_workflow(run)

    def _is_of_workflow(self, run: WorkflowRun) -> bool:
        # A path may end in ``@`` and the ref of the file.
        same_file = run.path.partition("@")[0].removeprefix(_FOLDER) == self.file.removeprefix(_FOLDER)
        return same_file and run.is_of(self.repository)


def get_run(api: Github, repository: str, run_id: int) -> WorkflowRun:
    """Return one run of any event."""
    return ask(api, WorkflowRun, f"/repos/{repository}/actions/runs/{run_id}")


def artifacts_named(api: Github, repository: str, run_id: int, name: str) -> list[Artifact]:
    """Return the artifacts of a run with this name, newest first; several if the run was repeated."""
    path = f"/repos/{repository}/actions/runs/{run_id}/artifacts"
    listed: list[Artifact] = []
    for page in range(1, _RUN_PAGES + 1):
        answer = ask(api, _Artifacts, path, name=name, per_page=str(_PER_PAGE), page=str(page))
        listed += answer.artifacts
        if page * _PER_PAGE >= answer.total_count:
            break
    # Older servers ignore the filter.
    return sorted((one for one in listed if one.name == name), key=lambda one: one.id, reverse=True)


PERMISSIONS = ("actions: read",)
_JOB_PAGES = 10


class WorkflowJob(BaseModel):
    """A job in one attempt of a workflow run, as GitHub describes it; its id is also the id of its check run."""

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
        """Whether it has ended."""
        return self.status == "completed"

    def has(self, moment: datetime) -> bool:
        """Return whether it was at work at a moment."""
        began, ended = self.started_at, self.completed_at
        return began is not None and ended is not None and began <= moment <= ended


class _Jobs(BaseModel):
    total_count: int
    jobs: list[WorkflowJob]


@dataclass(frozen=True)
class RunJobs:
    """The jobs of the workflow run that publishes."""

    own: str
    others: tuple[WorkflowJob, ...]


def jobs_of(api: Github, repository: str, run_id: int) -> tuple[WorkflowJob, ...]:
    """Return the jobs of all attempts of a workflow run, as GitHub lists them; nothing if there are too many."""
    path = f"/repos/{repository}/actions/runs/{run_id}/jobs"
    found: list[WorkflowJob] = []
    for page in range(1, _JOB_PAGES + 1):
        # A repeated attempt need not list the jobs that it does not repeat.
        listed = ask(api, _Jobs, path, filter="all", per_page=str(_PER_PAGE), page=str(page))
        found += listed.jobs
        if len(found) >= listed.total_count:
            return tuple(found)
        if not listed.jobs:
            break
    return ()


def end_of(jobs: Sequence[WorkflowJob]) -> datetime | None:
    """Return when the last job ended; ``None`` if it is unknown."""
    ends = [job.completed_at for job in jobs]
    known = [end for end in ends if end is not None]
    return max(known) if known and len(known) == len(ends) else None


def is_repeated(jobs: Sequence[WorkflowJob], moment: datetime) -> bool:
    """Return whether each job that was at work at a moment ran again later, in another attempt.

    An attempt can repeat some jobs only. GitHub lists the others with their old times, or not at all.
    """
    newest = {job.name: job for job in sorted(jobs, key=lambda one: one.run_attempt)}
    working = [job for job in jobs if job.has(moment)]
    return bool(working) and all(
        newest[one.name].run_attempt > one.run_attempt and not newest[one.name].has(moment) for one in working
    )


def jobs_of_run(client: GitHubClient, repository: str, run_id: int, check_run_id: str, runner: str) -> RunJobs | None:
    """Return the jobs of a workflow run; ``None`` if GitHub does not tell them, or which of them is the own one."""
    try:
        with client.open(f"list the jobs of workflow run {run_id} of {repository}", PERMISSIONS) as api:
            jobs = jobs_of(api, repository, run_id)
    except GithubError:
        return None
    own = [job for job in jobs if str(job.id) == check_run_id]
    own = own or [job for job in jobs if runner and job.runner_name == runner and not job.is_done]
    if len(own) != 1:
        return None
    # A later attempt repeats the names of the earlier one.
    newest = {job.name: job for job in sorted(jobs, key=lambda job: job.id) if job.name != own[0].name}
    return RunJobs(own[0].name, tuple(newest.values()))
