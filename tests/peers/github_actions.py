"""Workflow runs and artifacts as GitHub answers for them, from a store that tests fill."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode
from zipfile import ZIP_DEFLATED, ZipFile

from tests.peers.github_proxy import Answer, GithubProxy, Incoming

WORKFLOW = ".github/workflows/agenteval.yml"
#: A blob store is another host than the API.
BLOB_HOST = "localhost"

_START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
_REPO = r"/repos/(?P<repository>[^/]+/[^/]+)"
_Item = TypeVar("_Item")


def zipped(content: bytes | str, name: str = "results.json", **others: str) -> bytes:
    """An artifact as the upload action makes it: a file and others, whose names have their first ``_`` as a dot."""
    data = BytesIO()
    with ZipFile(data, "w", ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
        for other, text in others.items():
            archive.writestr(other.replace("_", ".", 1), text)
    return data.getvalue()


def packed(directory: Path) -> bytes:
    """The directory as the upload action packs it."""
    data = BytesIO()
    with ZipFile(data, "w", ZIP_DEFLATED) as archive:
        for file in sorted(directory.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(directory).as_posix())
    return data.getvalue()


@dataclass(frozen=True)
class StoredRun:
    """One workflow run.

    ``head_repository`` is ``None`` once a fork was deleted, although GitHub's description does not say so.
    """

    id: int
    repository: str
    head_repository: str | None
    workflow: str
    head_branch: str
    head_sha: str
    event: str
    status: str
    conclusion: str | None
    created_at: datetime
    actor: str


@dataclass(frozen=True)
class StoredJob:
    """One job of a workflow run."""

    id: int
    run_id: int
    name: str
    status: str
    runner_name: str
    run_attempt: int = 1
    started_at: datetime | None = None
    completed_at: datetime | None = None


@dataclass
class StoredArtifact:
    """One artifact. GitHub leaves ``digest`` null for artifacts of old versions of the upload action."""

    id: int
    run: StoredRun
    name: str
    data: bytes
    expired: bool
    digest: str | None
    created_at: datetime


@dataclass
class Actions:
    """The store, and the answers from it.

    Attributes:
        base_url: of the API.
        workflows: paths of workflow files; the id of a workflow is its place in the list, from 1.
        is_dispatchable: whether they have the trigger ``workflow_dispatch``.
    """

    base_url: str
    workflows: list[str] = field(default_factory=lambda: [WORKFLOW])
    runs: list[StoredRun] = field(default_factory=list)
    artifacts: list[StoredArtifact] = field(default_factory=list)
    jobs: list[StoredJob] = field(default_factory=list)
    is_dispatchable: bool = True
    _ids: Iterable[int] = field(default_factory=lambda: count(9_000_000_001), repr=False)

    def run(
        self,
        repository: str,
        head_sha: str,
        *,
        branch: str = "main",
        event: str = "push",
        workflow: str = WORKFLOW,
        head_repository: str | None = "",
        status: str = "completed",
        conclusion: str | None = "success",
        created_at: datetime | None = None,
        actor: str = "octocat",
    ) -> StoredRun:
        if workflow not in self.workflows:
            self.workflows.append(workflow)
        run = StoredRun(
            next(iter(self._ids)),
            repository,
            repository if head_repository == "" else head_repository,
            workflow,
            branch,
            head_sha,
            event,
            status,
            conclusion,
            created_at or _START + timedelta(minutes=len(self.runs)),
            actor,
        )
        self.runs.append(run)
        return run

    def artifact(
        self, run: StoredRun, name: str, data: bytes, *, expired: bool = False, digest: str | None = ""
    ) -> StoredArtifact:
        true_digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        artifact = StoredArtifact(
            next(iter(self._ids)),
            run,
            name,
            data,
            expired,
            true_digest if digest == "" else digest,
            run.created_at + timedelta(seconds=30),
        )
        self.artifacts.append(artifact)
        return artifact

    def job(self, run_id: int, name: str, status: str = "in_progress", runner_name: str = "") -> StoredJob:
        job = StoredJob(next(iter(self._ids)), run_id, name, status, runner_name)
        self.jobs.append(job)
        return job

    def ended_job(self, run_id: int, name: str, began: datetime, took: timedelta, attempt: int = 1) -> None:
        of_run = (run_id, name, "completed", "", attempt)
        self.jobs.append(StoredJob(next(iter(self._ids)), *of_run, began, began + took))

    def clear(self) -> None:
        self.runs.clear()
        self.artifacts.clear()
        self.jobs.clear()
        self.is_dispatchable = True

    def served_by(self, proxy: GithubProxy) -> None:
        routes: Mapping[str, Callable[[Incoming, re.Match[str]], Answer]] = {
            rf"{_REPO}/actions/runs": self._list_runs,
            rf"{_REPO}/actions/workflows/(?P<workflow>[^/]+)/runs": self._list_runs,
            rf"{_REPO}/actions/runs/(?P<run>\d+)": self._get_run,
            rf"{_REPO}/actions/runs/(?P<run>\d+)/artifacts": self._list_artifacts,
            rf"{_REPO}/actions/runs/(?P<run>\d+)/jobs": self._list_jobs,
            rf"{_REPO}/actions/artifacts": self._list_artifacts,
            rf"{_REPO}/actions/artifacts/(?P<artifact>\d+)": self._get_artifact,
            rf"{_REPO}/actions/artifacts/(?P<artifact>\d+)/zip": self._redirect,
            r"/_blob/(?P<artifact>\d+)": self._blob,
        }
        for path, handler in routes.items():
            proxy.serve("GET", path, handler)
        proxy.serve("POST", rf"{_REPO}/actions/workflows/(?P<workflow>[^/]+)/dispatches", self._dispatch)

    def _dispatch(self, request: Incoming, found: re.Match[str]) -> Answer:
        workflow = self._workflow(found["workflow"])
        if workflow is None:
            return Answer.message(404, "Not Found")
        if not self.is_dispatchable:
            return Answer.message(422, "Workflow does not have 'workflow_dispatch' trigger")
        branch = json.loads(request.body)["ref"]
        self.run(
            found["repository"],
            "d" * 40,
            branch=branch,
            event="workflow_dispatch",
            workflow=workflow,
            status="queued",
            conclusion=None,
            actor="github-actions[bot]",
        )
        return Answer(204, b"", {})

    def _list_runs(self, request: Incoming, found: re.Match[str]) -> Answer:
        query = request.query
        unserved = query.keys() - {
            "branch",
            "event",
            "head_sha",
            "status",
            "exclude_pull_requests",
            "per_page",
            "page",
        }
        if unserved:
            return Answer.message(501, f"the tests' store does not know {sorted(unserved)}")
        workflow = self._workflow(found.groupdict().get("workflow"))
        if "workflow" in found.groupdict() and workflow is None:
            return Answer.message(404, "Not Found")
        chosen = [
            run
            for run in self.runs
            if run.repository == found["repository"]
            and workflow in {None, run.workflow}
            and query.get("branch", run.head_branch) == run.head_branch
            and query.get("event", run.event) == run.event
            and query.get("head_sha", run.head_sha) == run.head_sha
            and query.get("status", run.status) in {run.status, run.conclusion}
        ]
        chosen.sort(key=lambda run: (run.created_at, run.id), reverse=True)
        # With any of these filters GitHub gives the newest 1,000 at most.
        if query.keys() & {"branch", "event", "head_sha", "status"}:
            chosen = chosen[:1000]
        return self._page(request, "workflow_runs", chosen, self.run_json)

    def _get_run(self, _request: Incoming, found: re.Match[str]) -> Answer:
        for run in self.runs:
            if run.repository == found["repository"] and run.id == int(found["run"]):
                return Answer.json(self.run_json(run))
        return Answer.message(404, "Not Found")

    def _list_artifacts(self, request: Incoming, found: re.Match[str]) -> Answer:
        run_id = found.groupdict().get("run")
        if run_id is not None and all(run.id != int(run_id) for run in self.runs):
            return Answer.message(404, "Not Found")
        chosen = [
            artifact
            for artifact in self.artifacts
            if artifact.run.repository == found["repository"]
            and run_id in {None, str(artifact.run.id)}
            and request.query.get("name", artifact.name) == artifact.name
        ]
        chosen.sort(key=lambda artifact: artifact.id, reverse=True)
        return self._page(request, "artifacts", chosen, self.artifact_json)

    def _list_jobs(self, request: Incoming, found: re.Match[str]) -> Answer:
        chosen = [job for job in self.jobs if job.run_id == int(found["run"])]
        return self._page(request, "jobs", chosen, _job_json) if chosen else Answer.message(404, "Not Found")

    def _get_artifact(self, _request: Incoming, found: re.Match[str]) -> Answer:
        artifact = self._artifact(found)
        return Answer.json(self.artifact_json(artifact)) if artifact else Answer.message(404, "Not Found")

    def _redirect(self, request: Incoming, found: re.Match[str]) -> Answer:
        artifact = self._artifact(found)
        if artifact is None:
            return Answer.message(404, "Not Found")
        if artifact.expired:
            return Answer.message(410, "Artifact has expired")
        port = self.base_url.rpartition(":")[2]
        return Answer(302, b"", {"Location": f"http://{BLOB_HOST}:{port}/_blob/{artifact.id}?sig=signed"})

    def _blob(self, request: Incoming, found: re.Match[str]) -> Answer:
        if request.authorization:
            # As Azure's blob store does.
            return Answer(400, b"<Error><Code>InvalidAuthenticationInfo</Code></Error>", {"Content-Type": "text/xml"})
        artifact = next((a for a in self.artifacts if a.id == int(found["artifact"])), None)
        if artifact is None or request.host != BLOB_HOST or request.query.get("sig") != "signed":
            return Answer(403, b"<Error><Code>AuthenticationFailed</Code></Error>", {"Content-Type": "text/xml"})
        return Answer(200, artifact.data, {"Content-Type": "application/zip"})

    def _artifact(self, found: re.Match[str]) -> StoredArtifact | None:
        for artifact in self.artifacts:
            if artifact.run.repository == found["repository"] and artifact.id == int(found["artifact"]):
                return artifact
        return None

    def _workflow(self, name: str | None) -> str | None:
        for number, path in enumerate(self.workflows, start=1):
            if name in {str(number), path.rpartition("/")[2]}:
                return path
        return None

    def _page(
        self, request: Incoming, key: str, items: Sequence[_Item], as_json: Callable[[_Item], dict[str, Any]]
    ) -> Answer:
        query = request.query
        per_page = min(int(query.get("per_page", 30)), 100)
        page = int(query.get("page", 1))
        last = max(1, -(-len(items) // per_page))
        links = {"next": page + 1, "last": last} if page < last else {}
        links |= {"first": 1, "prev": page - 1} if page > 1 else {}
        shown = items[(page - 1) * per_page : page * per_page]
        where = f"{self.base_url}{request.route}"
        link = ", ".join(f'<{where}?{urlencode(query | {"page": n})}>; rel="{rel}"' for rel, n in links.items())
        body = {"total_count": len(items), key: [as_json(item) for item in shown]}
        return Answer.json(body, 200, **({"Link": link} if link else {}))

    def run_json(self, run: StoredRun) -> dict[str, Any]:
        url = f"{self.base_url}/repos/{run.repository}/actions/runs/{run.id}"
        head = None if run.head_repository is None else self._repository(run.head_repository, run.repository)
        return {
            "id": run.id,
            "name": "agenteval",
            "head_branch": run.head_branch,
            "head_sha": run.head_sha,
            "path": run.workflow,
            "run_attempt": 1,
            "event": run.event,
            "status": run.status,
            "conclusion": run.conclusion,
            "workflow_id": self.workflows.index(run.workflow) + 1,
            "url": url,
            "html_url": url,
            "created_at": _iso(run.created_at),
            "repository": self._repository(run.repository, run.repository),
            "head_repository": head,
            "actor": self._user(run.actor),
        }

    def artifact_json(self, artifact: StoredArtifact) -> dict[str, Any]:
        run = artifact.run
        url = f"{self.base_url}/repos/{run.repository}/actions/artifacts/{artifact.id}"
        return {
            "id": artifact.id,
            "name": artifact.name,
            "size_in_bytes": len(artifact.data),
            "url": url,
            "archive_download_url": f"{url}/zip",
            "expired": artifact.expired,
            "digest": artifact.digest,
            "created_at": _iso(artifact.created_at),
            "workflow_run": {"id": run.id, "head_branch": run.head_branch, "head_sha": run.head_sha},
        }

    def _repository(self, full_name: str, parent: str) -> dict[str, Any]:
        owner, _, name = full_name.partition("/")
        return {
            "id": _number(full_name),
            "name": name,
            "full_name": full_name,
            "owner": self._user(owner),
            "fork": full_name != parent,
            "url": f"{self.base_url}/repos/{full_name}",
        }

    def _user(self, login: str) -> dict[str, Any]:
        return {"login": login, "id": _number(login), "url": f"{self.base_url}/users/{login}", "type": "User"}


def _job_json(job: StoredJob) -> dict[str, Any]:
    times = {name: _iso(time) if time else None for name, time in asdict(job).items() if name.endswith("_at")}
    return asdict(job) | times


def _iso(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _number(name: str) -> int:
    """An id that the same name always gets."""
    return int(hashlib.sha256(name.encode()).hexdigest()[:7], 16)
