"""Starts a run of the base branch after two pull requests in which the control scored lower than the pool.

A model or a provider may have become worse. Until the pool has new runs, more pull requests than usual need runs side
by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pydantic import ValidationError

from agenteval.github.artifacts import DownloadedReport, UnusableArtifactError
from agenteval.github.baseline import SearchLimits
from agenteval.github.client import GitHubClient, GithubError
from agenteval.github.workflow_runs import Artifact, Workflow, WorkflowRun, artifacts_named
from agenteval.results.comparison import LowControl
from agenteval.results.model import Results
from agenteval.results.store import parse_results

_READS, _WRITES = ("actions: read",), ("actions: write",)
# Runs of the base branch; those of a merge queue are not in its pool yet.
_OF_BASE = ("push", "workflow_dispatch", "schedule")
_DISPATCHED = "workflow_dispatch"
_WITHIN = timedelta(days=1)
_NO_TRIGGER = 422
_LIMITS = SearchLimits(downloads=10)
_INVALID = "GitHub's response is invalid"


@dataclass(frozen=True)
class BaseRunRequest:
    """Asks for a run of the base branch from the job of a pull request.

    Artifacts of forks are not read: their authors control them. The job of a pull request starts no other one for it,
    so runs cannot start each other without end.

    Args:
        repository: ``owner/name``.
    """

    client: GitHubClient
    repository: str
    workflow: str
    artifact: str
    branch: str
    head: str
    limits: SearchLimits = _LIMITS

    def make(self, results: Results, low: LowControl) -> str:
        """Start the run if another pull request found the same; return a sentence about it, or nothing.

        Args:
            results: the run of this pull request.

        Raises:
            GithubError: GitHub refused, failed or could not be reached.
        """
        try:
            now, began = (_moment(text) for text in (results.run.started_at, low.epoch_began_at))
            other = self._other(results, now, began)
        except ValidationError:
            raise GithubError(f"cannot look for other pull requests: {_INVALID}") from None
        except ValueError as error:
            raise GithubError(f"cannot look for other pull requests: {error}") from None
        if other is None:
            return ""
        purpose = f"start a run of {self.branch}"
        try:
            with self.client.open(purpose, _WRITES) as api:
                Workflow(api, self.repository, self.workflow, self.branch).dispatch()
        except GithubError as error:
            if error.status != _NO_TRIGGER:
                raise
            message = f"cannot {purpose}: {self.workflow} needs the trigger `workflow_dispatch` there"
            raise GithubError(message, error.status) from None
        return (
            f"the base commit's agent scored lower than in the earlier runs here and in {other}, so a new run of "
            f"{self.branch} was started"
        )

    def _other(self, results: Results, now: datetime, began: datetime) -> str | None:
        """Return the other pull request, as text; ``None`` without one, or if the base branch has run since.

        Args:
            results: the run of this pull request.
            began: when the epoch of the base branch began.
        """
        with self.client.open("look for runs of the base branch and of other pull requests", _READS) as api:
            workflow = Workflow(api, self.repository, self.workflow, self.branch)
            of_base = [run for event in _OF_BASE for run in workflow.trusted_runs(event, 1)[0]]
            if any(run.event == _DISPATCHED and run.is_by_app and run.created_at >= began for run in of_base):
                return None
            newest = max((run.created_at for run in of_base), default=began)
            if newest >= now:
                return None
            since = max(newest, now - _WITHIN)
            runs = [run for run in workflow.all_proposed_runs() if self._may_tell(run, since)]
            kept = [
                artifact
                for run in runs[: self.limits.downloads]
                for artifact in artifacts_named(api, self.repository, run.id, self.artifact)[:1]
            ]
        return next(filter(None, (self._low(artifact, results) for artifact in kept)), None)

    def _may_tell(self, run: WorkflowRun, since: datetime) -> bool:
        return run.head_branch != self.head and not run.is_going_on and run.created_at > since

    def _low(self, artifact: Artifact, results: Results) -> str:
        """Return the pull request of an artifact whose control was low in the same epoch, as text; else nothing."""
        limits = self.limits
        try:
            report = DownloadedReport.download(self.client, self.repository, artifact, limits.download, limits.member)
            found = report.results(parse_results)
        except UnusableArtifactError:
            return ""
        ours, theirs = (run.comparison.low_control if run.comparison else None for run in (results, found))
        ref = found.run.ref or ""
        is_other = ref.startswith("refs/pull/") and ref != results.run.ref
        is_same = ours is not None and theirs is not None and ours.epoch_began_at == theirs.epoch_began_at
        repeats = found.memory is not None and found.memory.repeats
        return f"pull request #{ref.split('/')[2]}" if is_other and is_same and not repeats else ""


def _moment(text: str) -> datetime:
    """Return a time from a file.

    Raises:
        ValueError: the text is not a time.
    """
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
