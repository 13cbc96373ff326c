"""The runs of a workflow that can be trusted to speak for a branch, and their artifacts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pydantic import BaseModel

if TYPE_CHECKING:
    from github import Github

# Runs of pull requests are listed under a branch as well when a fork's branch has its name; whoever opens
# one decides what such a run says.
_TRUSTED_EVENTS = frozenset({"push", "schedule", "workflow_dispatch", "merge_group"})
_FOLDER = ".github/workflows/"
_PER_PAGE = 100
_PAGES = 2


class _Repository(BaseModel):
    full_name: str


class Run(BaseModel):
    """One workflow run; ``head_repository`` is ``None`` when the fork it came from was deleted."""

    id: int
    event: str
    path: str
    head_branch: str | None
    head_sha: str
    status: str | None = None
    created_at: datetime
    repository: _Repository
    head_repository: _Repository | None

    @property
    def is_going_on(self) -> bool:
        """Whether it may still leave something behind."""
        return self.status not in {None, "completed"}

    def is_of(self, repository: str) -> bool:
        """Whether both the workflow and the commit are of this very repository."""
        sides = (self.repository, self.head_repository)
        return all(side and side.full_name.casefold() == repository.casefold() for side in sides)


class Artifact(BaseModel):
    """One artifact of a run."""

    id: int
    name: str
    expired: bool
    size_in_bytes: int
    created_at: datetime | None = None
    digest: str | None = None


class _Runs(BaseModel):
    total_count: int
    workflow_runs: list[Run]


class _Artifacts(BaseModel):
    total_count: int
    artifacts: list[Artifact]


@dataclass(frozen=True)
class Workflow:
    """A workflow whose runs are looked for.

    Args:
        api: an open connection.
        repository: ``owner/name``.
        file: name of the workflow file, with or without its folder.
        branch: the branch that runs have to speak for.
    """

    api: Github
    repository: str
    file: str
    branch: str

    def trusted_runs(self, nearest: str) -> list[Run]:
        """The newest runs of the branch and its merge queue, newest first.

        Args:
            nearest: the commit whose runs matter most; asked for when the newest runs do not reach back to it.

        Raises:
            GithubException: GitHub knows no such workflow, or refuses.
            ValidationError: the answer is not what GitHub describes.
        """
        listed, more = self._newest(branch=self.branch)
        runs = self._trusted(listed)
        if more and len(runs) < _PER_PAGE:
            # Others' pull requests crowd them out.
            runs |= self._trusted(self._page(1, branch=self.branch, event="push").workflow_runs)
        # A merge queue runs under branches of its own, so the branch's list does not have them.
        for query in ({"head_sha": nearest}, {"event": "merge_group"}):
            if all(run.head_sha != nearest for run in runs.values()):
                runs |= self._trusted(self._page(1, **query).workflow_runs)
        return sorted(runs.values(), key=lambda run: (run.created_at, run.id), reverse=True)

    def _newest(self, **query: str) -> tuple[list[Run], bool]:
        """The runs on the first pages, and whether there are more of them."""
        runs: list[Run] = []
        total = 0
        for page in range(1, _PAGES + 1):
            answer = self._page(page, **query)
            runs += answer.workflow_runs
            total = answer.total_count
            if not answer.workflow_runs or len(runs) >= total:
                break
        return runs, len(runs) < total

    def _page(self, page: int, **query: str) -> _Runs:
        name = quote(self.file.rpartition("/")[2], safe="")
        path = f"/repos/{self.repository}/actions/workflows/{name}/runs"
        sent = {**query, "exclude_pull_requests": "true", "per_page": str(_PER_PAGE), "page": str(page)}
        return _Runs.model_validate(_get(self.api, path, sent))

    def _trusted(self, runs: Iterable[Run]) -> dict[int, Run]:
        return {run.id: run for run in runs if self._is_trusted(run)}

    def _is_trusted(self, run: Run) -> bool:
        branch = run.head_branch or ""
        of_branch = branch == self.branch
        if run.event == "merge_group":
            of_branch = branch.startswith(f"gh-readonly-queue/{self.branch}/")
        # A path may end in ``@`` and the ref that the file was taken from.
        same_file = run.path.partition("@")[0].removeprefix(_FOLDER) == self.file.removeprefix(_FOLDER)
        return run.event in _TRUSTED_EVENTS and of_branch and same_file and run.is_of(self.repository)


def get_run(api: Github, repository: str, run_id: int) -> Run:
    """One run, of whatever event.

    Raises:
        GithubException: there is none of this id in this repository, or GitHub refuses.
        ValidationError: the answer is not what GitHub describes.
    """
    return Run.model_validate(_get(api, f"/repos/{repository}/actions/runs/{run_id}", {}))


def artifacts_named(api: Github, repository: str, run_id: int, name: str) -> list[Artifact]:
    """The artifacts of a run that have this name, newest first; several when the run was repeated.

    Raises:
        GithubException: the run is gone, or GitHub refuses.
        ValidationError: the answer is not what GitHub describes.
    """
    # Servers that do not know the filter ignore it.
    found = [artifact for artifact in _all_artifacts(api, repository, run_id, name) if artifact.name == name]
    return sorted(found, key=lambda artifact: artifact.id, reverse=True)


def _all_artifacts(api: Github, repository: str, run_id: int, name: str) -> Iterator[Artifact]:
    path = f"/repos/{repository}/actions/runs/{run_id}/artifacts"
    for page in range(1, _PAGES + 1):
        sent = {"name": name, "per_page": str(_PER_PAGE), "page": str(page)}
        answer = _Artifacts.model_validate(_get(api, path, sent))
        yield from answer.artifacts
        if page * _PER_PAGE >= answer.total_count:
            return


def _get(api: Github, path: str, query: dict[str, str]) -> Any:
    _, answer = api.requester.requestJsonAndCheck("GET", path, parameters=query)
    return answer
