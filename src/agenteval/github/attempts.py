"""The earlier attempts of a pull request, and the label that makes agenteval forget them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from agenteval.core.errors import AgentEvalError
from agenteval.core.records import dataclass, field, replace
from agenteval.core.secrets import shortened
from agenteval.core.writing import write_bytes
from agenteval.github.artifacts import PERMISSIONS, DownloadedReport, UnusableArtifactError
from agenteval.github.baseline import SearchLimits
from agenteval.github.client import (
    PULL_REQUEST_PERMISSIONS,
    GitHubClient,
    GithubError,
    label_key,
    may_write,
    newest_label_events,
)
from agenteval.github.workflow_runs import Artifact, Workflow, artifacts_named
from agenteval.results.store import parse_results
from agenteval.run.context import Recollection
from agenteval.run.journal import JOURNAL_FILE, confirmation_file

FORGET = "agenteval: forget"


_NOT_FOUND = 404
_MAX_NOTE = 400
_MOST_CONFIRMATIONS = 100
_LIMITS = SearchLimits(downloads=20, runs=20)


# An artifact with the time of its run, and the id of the run.
_Kept = tuple[datetime, int, Artifact]


@dataclass(frozen=True)
class RemoteAttempts:
    """Searches the artifacts of the workflow's runs for one pull request, whose branch is in the repository.

    Artifacts of forks are never read: their authors control them. Who can push to the repository can also forge an
    artifact, by a change of the workflow, which the pull request shows.

    Args:
        client: returns the connection to GitHub; raises ``ConfigError`` without a token.
        repository: ``owner/name``.
    """

    client: Callable[[], GitHubClient]
    repository: str
    workflow: str
    artifact: str
    pull_request: int
    branch: str
    limits: SearchLimits = field(default_factory=lambda: _LIMITS)

    def recall(self) -> Recollection:
        """Return the newest usable attempt; a failure of GitHub is a warning."""
        notes: list[str] = []
        try:
            client = self.client()
            found = self._newest(client, notes)
            return Recollection(warnings=tuple(notes)) if found is None else self._known(client, *found, notes)
        except ValidationError:
            why = "GitHub's response is invalid"
        except AgentEvalError as error:
            why = str(error)
        return Recollection(warnings=(*notes, f"{_UNREAD}: {why}"))

    def _known(
        self, client: GitHubClient, earlier: Recollection, made_at: datetime, notes: list[str]
    ) -> Recollection:
        is_allowed = False
        try:
            purpose = f"read the labels of pull request #{self.pull_request}"
            with client.open(purpose, PULL_REQUEST_PERMISSIONS) as api:
                label = newest_label_events(api, self.repository, self.pull_request).get(label_key(FORGET))
            if label is not None and label.is_set:
                is_allowed = may_write(client, self.repository, label.by)
        except (GithubError, ValidationError) as error:
            why = str(error) if isinstance(error, GithubError) else "GitHub's response is invalid"
            notes.append(f"it is unknown whether the pull request has the label `{FORGET}`: {why}")
            label = None
        if label is None or not label.is_set or label.created_at < made_at:
            return replace(earlier, warnings=tuple(notes))
        by = label.by or "an unknown user"
        if is_allowed:
            return Recollection(forgotten_by=by, warnings=tuple(notes))
        notes.append(f"{by} set `{FORGET}` without write access to {self.repository}; nothing was forgotten")
        return replace(earlier, warnings=tuple(notes))

    def _newest(self, client: GitHubClient, notes: list[str]) -> tuple[Recollection, datetime] | None:
        """Return the newest attempt that can be used, and its time; ``notes`` get the problems of newer ones."""
        begun = time.monotonic()
        kept_all, older = self._kept(client)
        for tried, (made_at, run_id, artifact) in enumerate(kept_all):
            if tried >= self.limits.downloads or time.monotonic() - begun > self.limits.total_s:
                notes.append(f"{_UNREAD}: {len(kept_all) - tried} more artifacts of its branch were not read")
                break
            try:
                return self._attempt(client, artifact), made_at
            except _NoAttemptError:
                continue
            except UnusableArtifactError as error:
                where = f"artifact {artifact.name} of workflow run {run_id} cannot be used"
                notes.append(shortened(f"{where}: {error.reason}", _MAX_NOTE))
        if older:
            newest = f"the newest {self.limits.runs} workflow runs of its branch contain no attempt"
            notes.append(f"{_UNREAD}: {newest}, and {older} older ones were not read")
        return None

    def _kept(self, client: GitHubClient) -> tuple[list[_Kept], int]:
        """Return the artifacts of the newest runs of the branch, newest first, and the number of older runs."""
        purpose = f"look for earlier runs of pull request #{self.pull_request}"
        try:
            with client.open(purpose, PERMISSIONS) as api:
                runs = Workflow(api, self.repository, self.workflow, self.branch).proposed_runs()
                found = [
                    (artifact.created_at or run.began_at, run.id, artifact)
                    for run in runs[: self.limits.runs]
                    for artifact in artifacts_named(api, self.repository, run.id, self.artifact)
                ]
        except GithubError as error:
            # A workflow that the pull request adds has never run.
            if error.status == _NOT_FOUND:
                return [], 0
            raise
        newest_first = sorted(found, key=lambda kept: (kept[0], kept[2].id), reverse=True)
        return newest_first, max(0, len(runs) - self.limits.runs)

    def _attempt(self, client: GitHubClient, artifact: Artifact) -> Recollection:
        """Return the attempt in an artifact.

        Raises:
            UnusableArtifactError: it cannot be read.
            GithubError: GitHub refused, failed or could not be reached.
        """
        limits = self.limits
        report = DownloadedReport.download(client, self.repository, artifact, limits.download, limits.member)
        results = report.results(parse_results)
        # The branch can have had another pull request before, earlier versions keep no record of attempts, and shards
        # decide nothing.
        if (
            results.memory is None
            or results.run.shard is not None
            or results.run.ref != f"refs/pull/{self.pull_request}/merge"
        ):
            raise _NoAttemptError("it contains no attempt of this pull request")
        return Recollection(results, partial(_restore, report))


_UNREAD = "the earlier runs of this pull request cannot be read, so this run is decided like a first one"


class _NoAttemptError(UnusableArtifactError):
    """The artifact is sound, but not of this pull request."""


def _restore(report: DownloadedReport, directory: Path) -> bool:
    """Write the journals in an artifact to a directory; return false if there are no journals."""
    written = False
    for name, content in _journals(report):
        write_bytes(directory, name, content)
        written = True
    return written


def _journals(report: DownloadedReport) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of the journal of an attempt, and of each of its confirmations."""
    names = (JOURNAL_FILE, *(confirmation_file(number) for number in range(1, _MOST_CONFIRMATIONS + 1)))
    for name in names:
        try:
            yield name, report.file(name)
        except UnusableArtifactError:
            return
