"""Finds the results of the base branch in the artifacts of its workflow runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import ValidationError

from agenteval.ci.github.api.ancestry import Ancestor, ancestors, merge_base
from agenteval.ci.github.api.artifacts import PERMISSIONS, UnusableArtifactError, download, read_member
from agenteval.ci.github.api.client import Client, GithubError
from agenteval.ci.github.api.workflow_runs import Artifact, Run, Workflow, artifacts_named, get_run
from agenteval.ci.github.baseline.model import (
    At,
    Before,
    ChangeTo,
    Found,
    GivenRun,
    Missing,
    Search,
    SearchLimits,
    counted,
    short,
)
from agenteval.core.errors import ConfigError
from agenteval.core.masking import shortened
from agenteval.results.model import Results
from agenteval.results.partial import why_no_baseline
from agenteval.results.store import RESULTS_FILE, parse_baseline

if TYPE_CHECKING:
    from github import Github

#: Returns why results cannot be a baseline; ``None`` if they can.
Accept = Callable[[Results], str | None]

_MAX_NOTE = 400
# After these, the next artifact would fail too.
_FINAL = frozenset({401, 403, 429, None})


def find_baseline(
    client: Client, search: Search, accept: Accept, limits: SearchLimits | None = None
) -> Found | Missing:
    """Search the nearest usable results; a failure of GitHub becomes a reason.

    Only trusted runs count: of the base branch or its merge queue, with events other than pull requests. A run that
    the user names always counts, but must be of this repository.

    Args:
        client: connection to GitHub.
        search: parameters of the search.
        accept: decides whether results can be the baseline.
        limits: limits of downloads and time.
    """
    hunt = _Hunt(client, search, accept, limits or SearchLimits())
    try:
        if isinstance(search.start, GivenRun):
            return hunt.given(search.start.run_id)
        return hunt.nearest(search.start)
    except GithubError as error:
        return Missing(str(error), tuple(hunt.notes))


@dataclass
class _Hunt:
    """A search in progress. ``notes`` list the skipped runs, nearest first."""

    client: Client
    search: Search
    accept: Accept
    limits: SearchLimits
    notes: list[str] = field(default_factory=list)
    _seen: int = 0
    _expired: int = 0
    _tried: int = 0
    _begun: float = field(default_factory=time.monotonic)

    def given(self, run_id: int) -> Found | Missing:
        """Return the results of one run."""
        repository = self.search.repository
        with self._asking(f"read workflow run {run_id} of {repository}") as api:
            run = get_run(api, repository, run_id)
        if not run.is_of(repository):
            return Missing(f"the commit of workflow run {run_id} is not of {repository}")
        found = self._of_run(run, None, "")
        if found:
            return found
        nothing = f"workflow run {run_id} has no artifact named {self.search.artifact}"
        return Missing(self.notes[0] if self.notes else nothing, tuple(self.notes[1:]))

    def nearest(self, start: ChangeTo | Before | At) -> Found | Missing:
        """Return the results of the nearest commit with results."""
        from github import UnknownObjectException

        search = self.search
        with self._asking(f"look for a baseline on {search.base_branch} of {search.repository}") as api:
            began_at, commits = self._commits(api, start)
            if not commits:
                return Missing(f"there is no commit before {began_at}")
            workflow = Workflow(api, search.repository, search.workflow, search.base_branch)
            try:
                runs = workflow.trusted_runs(commits[0].sha)
            except UnknownObjectException:
                return Missing(
                    f"GitHub does not find workflow {search.workflow} in {search.repository}, or the token may not "
                    "see it; the file must be on the default branch, and the job needs actions: read"
                )
        candidates = _matched(runs, commits)
        for run, commit in candidates[: self.limits.runs]:
            if self._is_spent():
                self.notes.append(f"the search ended after {counted(self._tried, 'download')}, its limit")
                break
            found = self._of_run(run, commit.distance, began_at)
            if found:
                return found
        return Missing(self._reason(runs, len(candidates), commits, began_at), tuple(self.notes))

    def _commits(self, api: Github, start: ChangeTo | Before | At) -> tuple[str, list[Ancestor]]:
        """Return the start of the search as text, and the commits to search."""
        search, count = self.search, self.search.max_commits
        match start:
            case ChangeTo(head):
                base = merge_base(api, search.repository, search.base_branch, head)
                return "the merge base", ancestors(api, search.repository, base, count)
            case At(commit):
                return f"commit {short(commit)}", ancestors(api, search.repository, commit, count)
            case Before(commit):
                return f"commit {short(commit)}", ancestors(api, search.repository, commit, count + 1)[1:]

    def _of_run(self, run: Run, distance: int | None, began_at: str) -> Found | None:
        """Return the first usable results of a run; ``notes`` get the problems of others."""
        try:
            with self._asking(f"list the artifacts of workflow run {run.id}") as api:
                artifacts = artifacts_named(api, self.search.repository, run.id, self.search.artifact)
        except GithubError as error:
            self._pass_over(error, str(error))
            return None
        if not artifacts and run.is_going_on:
            self.notes.append(f"workflow run {run.id} (commit {short(run.head_sha)}) has not ended yet")
        for artifact in artifacts:
            if self._is_spent():
                break
            self._seen += 1
            try:
                data, results, notes = self._results(artifact, run)
            except (UnusableArtifactError, GithubError) as error:
                where = f"artifact {artifact.name} of workflow run {run.id} (commit {short(run.head_sha)})"
                why = error.reason if isinstance(error, UnusableArtifactError) else str(error)
                self._pass_over(error, f"{where} cannot be used: {why}")
                continue
            left_out = (*self.notes, *notes)
            return Found(data, results, run.head_sha, run.id, run.created_at, distance, began_at, left_out)
        return None

    def _results(self, artifact: Artifact, run: Run) -> tuple[bytes, Results, tuple[str, ...]]:
        if artifact.expired:
            self._expired += 1
            raise UnusableArtifactError("it has expired")
        self._tried += 1
        zipped = download(self.client, self.search.repository, artifact.id, artifact.digest, self.limits.download)
        data = read_member(zipped, RESULTS_FILE, self.limits.member)
        try:
            results, notes = parse_baseline(data, RESULTS_FILE)
        except ConfigError as error:
            raise UnusableArtifactError(str(error)) from None
        if reason := why_no_baseline(results):
            raise UnusableArtifactError(reason)
        if results.run.commit not in {None, run.head_sha}:
            raise UnusableArtifactError("its results are of another commit")
        if refusal := self.accept(results):
            raise UnusableArtifactError(refusal)
        return data, results, notes

    def _pass_over(self, error: Exception, note: str) -> None:
        """Add the problem of one run to the notes, unless it concerns all runs."""
        if isinstance(error, GithubError) and error.status in _FINAL:
            raise error
        self.notes.append(shortened(note, _MAX_NOTE))

    def _is_spent(self) -> bool:
        return self._tried >= self.limits.downloads or time.monotonic() - self._begun > self.limits.total_s

    @contextmanager
    def _asking(self, purpose: str) -> Iterator[Github]:
        try:
            with self.client.open(purpose, PERMISSIONS) as api:
                yield api
        except ValidationError:
            raise GithubError(f"cannot {purpose}: GitHub's response is invalid") from None

    def _reason(self, runs: Sequence[Run], candidates: int, commits: Sequence[Ancestor], began_at: str) -> str:
        workflow, branch, name = self.search.workflow, self.search.base_branch, self.search.artifact
        if not runs:
            return (
                f"{workflow} has not run on {branch} yet, which is normal the first time; later runs "
                "are compared with its first run"
            )
        if not candidates:
            return f"no run of {workflow} on {branch} belongs to {_places(commits, began_at)}"
        near = (
            f"{counted(candidates, 'run')} of {workflow} on {branch} {'is' if candidates == 1 else 'are'} near enough"
        )
        if not self._seen:
            return (
                f"{near}, but there is no artifact named {name}: the workflow must upload the report directory "
                "under that name, with actions/upload-artifact"
            )
        if self._expired == self._seen:
            return f"{near}, but all artifacts named {name} have expired"
        return f"{near}, but no artifact named {name} can be used"


def _places(commits: Sequence[Ancestor], began_at: str) -> str:
    if commits[0].distance > 0:
        return f"one of the {counted(len(commits), 'commit')} before {began_at}"
    before = counted(len(commits) - 1, "commit")
    return f"{began_at} or one of the {before} before it" if len(commits) > 1 else began_at


def _matched(runs: Sequence[Run], commits: Sequence[Ancestor]) -> list[tuple[Run, Ancestor]]:
    """Return runs with their commits: the nearest commit first, then the newest run."""
    return [(run, commit) for commit in commits for run in runs if run.head_sha == commit.sha]
