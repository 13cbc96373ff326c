"""What is known of a pull request: what people accepted by labels, and what its earlier runs have shown.

The event of a label tells who set it and when: after the commit that is evaluated was pushed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Final

from agenteval.core.errors import AgentEvalError
from agenteval.core.records import dataclass, field, replace
from agenteval.core.secrets import shortened
from agenteval.core.writing import write_file
from agenteval.github.artifacts import PERMISSIONS, DownloadedReport, UnusableArtifactError
from agenteval.github.baseline import SearchLimits
from agenteval.github.client import (
    PULL_REQUEST_PERMISSIONS,
    GitHubClient,
    GithubError,
    LabelEvent,
    label_key,
    may_write,
    newest_label_events,
)
from agenteval.github.workflow_runs import Artifact, Workflow, artifacts_named
from agenteval.results.store import parse_results
from agenteval.run.context import Given, GivenAcceptance, Recollection
from agenteval.run.store import JOURNAL_FILE, confirmation_file

#: A label that names a case begins with this.
LABEL: Final = "agenteval: accept "
#: The label that accepts the results of a fork's job. It names no case.
RESULTS_LABEL: Final = f"{LABEL}results"
#: The label that asks for the proof of an improvement too.
PROVE_LABEL: Final = "agenteval: prove"
# Characters.
_LONGEST_WARNING = 500
_LONGEST_LINE = 300
# A pull request can have many labels.
_MOST_WARNINGS = 5
_MOST_PEOPLE = 20
_UNREAD = "it is unknown whether somebody accepted changes of this pull request"


@dataclass(frozen=True)
class RemoteAcceptances:
    """Reads the labels of one pull request; ``new_label`` was set and started this run, empty for none."""

    client: Callable[[], GitHubClient]
    repository: str
    workflow: str
    pull_request: int
    commit: str
    new_label: str = ""

    def read(self) -> Given:
        """Return what was accepted for the commit; a failure of GitHub is a warning."""
        try:
            found = self._labels(f"read what was accepted in pull request #{self.pull_request}")
            entries = tuple(found.of_labels())
            asked_by = found.asking
        except AgentEvalError as error:
            return Given(warnings=(f"{_UNREAD}: {error}",))
        return Given(entries, tuple(dict.fromkeys(found.warnings))[:_MOST_WARNINGS], asked_by)

    def results_accepted(self, made_by: datetime | None) -> Given:
        """Return who accepted the results of the commit as a whole, by a label; nobody if GitHub does not tell it.

        Args:
            made_by: when the run ended that made the results; ``None`` if it is unknown. Nobody can have accepted
                results before: a fork can push a commit whose run takes hours, another one, and the first one again.
        """
        if made_by is None:
            return Given(warnings=("it is unknown when the run ended that made the results, so no label counts",))
        try:
            found = self._labels(f"read the labels of pull request #{self.pull_request}")
            entries = tuple(found.of_results(made_by))
        except AgentEvalError as error:
            return Given(warnings=(f"{_UNREAD}: {error}",))
        return Given(entries, tuple(found.warnings))

    def _labels(self, purpose: str) -> _Reading:
        client = self.client()
        with client.open(purpose, PULL_REQUEST_PERMISSIONS) as api:
            return _Reading(self, client, newest_label_events(api, self.repository, self.pull_request))


@dataclass
class _Reading:
    """What GitHub recorded, and the warnings about what does not count."""

    asked: RemoteAcceptances
    client: GitHubClient
    labels: dict[str, LabelEvent]
    warnings: list[str] = field(default_factory=list)
    _known: dict[str, bool] = field(default_factory=dict)

    def of_labels(self) -> Iterator[GivenAcceptance]:
        """Yield the labels that somebody with write access set after the commit was pushed."""
        start = len(LABEL)
        for name, event in self.labels.items():
            if name.startswith(LABEL) and name != RESULTS_LABEL and self._counts(event):
                yield GivenAcceptance(_short(event.label_name[start:]), event.by)

    def of_results(self, made_by: datetime) -> Iterator[GivenAcceptance]:
        """Yield the label that accepts all results, if somebody with write access set it for the commit."""
        event = self.labels.get(RESULTS_LABEL)
        if event is None or not self._counts(event):
            return
        if event.created_at < made_by:
            self._warn(f"the label, which {event.by} set, is older than the results and does not count; set it again")
        else:
            yield GivenAcceptance(RESULTS_LABEL, event.by)

    @property
    def asking(self) -> str:
        """Who asked to prove an improvement of the commit, with write access; empty for nobody."""
        event = self.labels.get(PROVE_LABEL)
        return event.by if event is not None and self._counts(event) else ""

    def _counts(self, event: LabelEvent) -> bool:
        """Return whether somebody with write access set a label after the commit was pushed."""
        if not event.is_set:
            return False
        name = event.label_name
        what = f"the label `{_short(name)}`, which {event.by or 'an unknown user'} set,"
        if not self._may_write(event.by):
            self._warn(f"{what} does not count: {self._no_access}")
            return False
        if not self._is_of_head(name, event):
            self._warn(f"{what} is older than this commit and does not count; set it again")
            return False
        return True

    def _is_of_head(self, name: str, event: LabelEvent) -> bool:
        if label_key(name) == label_key(self.asked.new_label):
            return True
        return self._since is not None and event.created_at >= self._since

    @cached_property
    def _since(self) -> datetime | None:
        """When the commit was the head for the last time that a run began for it."""
        asked = self.asked
        with self.client.open(f"read the workflow runs of commit {asked.commit}", ("actions: read",)) as api:
            runs = Workflow(api, asked.repository, asked.workflow, "").runs_proposing(asked.commit)
        return max((run.created_at for run in runs), default=None)

    def _may_write(self, login: str) -> bool:
        if login not in self._known:
            can_ask = len(self._known) < _MOST_PEOPLE
            self._known[login] = can_ask and may_write(self.client, self.asked.repository, login)
        return self._known[login]

    @property
    def _no_access(self) -> str:
        return f"this needs write access to {self.asked.repository}"

    def _warn(self, text: str) -> None:
        self.warnings.append(shortened(text, _LONGEST_WARNING))


def _short(text: str) -> str:
    return shortened(text, _LONGEST_LINE)


#: The label that makes agenteval forget the earlier runs.
FORGET: Final = "agenteval: forget"
_NOT_FOUND = 404
_MAX_NOTE = 400
_MOST_CONFIRMATIONS = 100
_LIMITS = SearchLimits(downloads=20, runs=20)
_UNREAD_RUNS = "the earlier runs of this pull request cannot be read, so this run is decided like a first one"
# An artifact with the time of its run, and the id of the run.
_Kept = tuple[datetime, int, Artifact]


@dataclass(frozen=True)
class RemoteAttempts:
    """Searches the artifacts of the workflow's runs for one pull request, whose branch is in the repository.

    Artifacts of forks are never read: their authors control them. Who can push to the repository can also forge an
    artifact, by a change of the workflow, which the pull request shows.

    Args:
        base_ref: the branch to merge into; the rules of another one made another verdict.
        unchanged: the head, if only the text of the pull request was edited.
    """

    client: Callable[[], GitHubClient]
    repository: str
    workflow: str
    artifact: str
    pull_request: int
    branch: str
    base_ref: str
    unchanged: str | None = None
    limits: SearchLimits = field(default_factory=lambda: _LIMITS)

    def recall(self) -> Recollection:
        """Return the newest usable attempt; a failure of GitHub is a warning."""
        notes: list[str] = []
        try:
            client = self.client()
            found = self._newest(client, notes)
            return Recollection(warnings=tuple(notes)) if found is None else self._known(client, *found, notes)
        except AgentEvalError as error:
            return Recollection(warnings=(*notes, f"{_UNREAD_RUNS}: {error}"))

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
        except GithubError as error:
            notes.append(f"it is unknown whether the pull request has the label `{FORGET}`: {error}")
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
                notes.append(f"{_UNREAD_RUNS}: {len(kept_all) - tried} more artifacts of its branch were not read")
                break
            try:
                return self._attempt(client, artifact), made_at
            except _NoAttemptError:
                continue
            except UnusableArtifactError as error:
                where = f"artifact {artifact.name} of workflow run {run_id} cannot be used"
                notes.append(shortened(f"{where}: {error.reason}", _MAX_NOTE))
        if older:
            newest = f"the newest {self.limits.runs} workflow runs of its branch contain no run of it"
            notes.append(f"{_UNREAD_RUNS}: {newest}, and {older} older ones were not read")
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
        report = DownloadedReport.download(client, self.repository, artifact, self.limits.artifact)
        results = report.results(parse_results)
        # The branch can have had another pull request before, earlier versions keep no record of attempts, and shards
        # decide nothing.
        if (
            results.memory is None
            or results.run.shard is not None
            or results.run.ref != f"refs/pull/{self.pull_request}/merge"
            or results.run.base_ref != self.base_ref
        ):
            raise _NoAttemptError("it contains no run of this pull request into this branch")
        stays = self.unchanged is not None and results.run.commit == self.unchanged
        return Recollection(results, partial(_restore, report), stays)


class _NoAttemptError(UnusableArtifactError):
    """The artifact is sound, but not of this pull request."""


def _restore(report: DownloadedReport, directory: Path) -> bool:
    """Write the journals of an attempt and of its confirmations to a directory; return false without any."""
    names = (JOURNAL_FILE, *(confirmation_file(number) for number in range(1, _MOST_CONFIRMATIONS + 1)))
    for place, name in enumerate(names):
        try:
            write_file(directory, name, report.file(name))
        except UnusableArtifactError:
            return place > 0
    return True
