"""Finds the results of the base branch in the artifacts of its workflow runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from agenteval.core.errors import AgentEvalError, ConfigError
from agenteval.core.escape import terminal
from agenteval.core.records import dataclass, field
from agenteval.core.secrets import shortened
from agenteval.core.text import place_of
from agenteval.github.artifacts import PERMISSIONS, DownloadedReport, UnusableArtifactError
from agenteval.github.baseline import CommitLine, Found, Missing, SearchLimits, Start, counted, describe, short
from agenteval.github.client import GitHubClient, GithubError
from agenteval.github.runner import say
from agenteval.github.workflow_runs import TRUSTED_EVENTS, Artifact, Workflow, WorkflowRun, artifacts_named, get_run
from agenteval.results.history import why_no_baseline
from agenteval.results.model import Results
from agenteval.results.store import parse_results
from agenteval.run.context import FoundBaseline, Search
from agenteval.run.git import Clone

#: Returns why results cannot be a baseline; ``None`` if they can.
Accept = Callable[[Results], str | None]

_MAX_NOTE = 400
# After these, the next artifact would fail too.
_FINAL = frozenset({401, 403, 429, None})


@dataclass(frozen=True)
class BaselineSearch:
    """A search in the artifacts of a workflow.

    Only trusted runs count: of the base branch or its merge queue, with events other than pull requests. A run that
    the user names always counts, but must be of this repository.

    Args:
        start: start of the search, whose ancestors follow; the id of a workflow run whose results are to be used; or
            why neither is known, as a sentence with the fix.
        own_run: id of the workflow run that searches: an earlier attempt of it is never its baseline.
    """

    client: Callable[[], GitHubClient]
    repository: str
    workflow: str
    artifact: str
    base_branch: str
    start: Start | int | str
    own_run: str | None = None
    default_branch: str | None = None
    clone: Clone | None = None
    limits: SearchLimits = field(default_factory=SearchLimits)

    def search(self, cases: Collection[str]) -> Search:
        """Return the nearest run of the suites with these cases; any run without cases.

        A change can rename all cases and move its suites, and is still compared: a run counts if it has one of the
        cases, a suite with the same path, or a suite that does not exist any more.
        """
        known = frozenset(cases)

        def is_known(path: str) -> bool:
            # Ids of cases begin with the path of their suite.
            return any(case_id.startswith(f"{path}::") for case_id in known)

        def accept(results: Results) -> str | None:
            if not known or any(case.id in known for _, case in results.cases()):
                return None
            if any(place_of(suite.path) is None or is_known(suite.path) for suite in results.suites):
                return None
            return "it is of other suites"

        found = self.find(accept)
        if isinstance(found, Missing):
            message = f"there is no baseline to compare with: {found.reason}"
            return Search(missing=(*found.notes, message))
        say(terminal(f"agenteval: {describe(found)}"))
        return Search(FoundBaseline(found.results, distance=found.distance, between=found.between), found.notes)

    def find(self, accept: Accept) -> Found | Missing:
        """Return the nearest usable results; a failure of GitHub becomes a reason."""
        if isinstance(self.start, str):
            # Without a search, no token is needed.
            return Missing(self.start)
        notes: list[str] = []
        try:
            hunt = _Hunt(self.client(), self, accept, notes)
            return hunt.given(self.start) if isinstance(self.start, int) else hunt.nearest(self.start)
        except (GithubError, ConfigError) as error:
            return Missing(str(error), tuple(notes))


class _SpentError(AgentEvalError):
    """A limit of the search is reached; the text names it."""


@dataclass
class _Hunt:
    """A search in progress. ``notes`` list the skipped runs, nearest first."""

    client: GitHubClient
    search: BaselineSearch
    accept: Accept
    notes: list[str]
    _asked: int = 0
    _listed: set[int] = field(default_factory=set)
    _near: int = 0
    _seen: int = 0
    _expired: int = 0
    _tried: int = 0
    _begun: float = field(default_factory=time.monotonic)

    def given(self, run_id: int) -> Found | Missing:
        """Return the results of one run."""
        repository = self.search.repository
        with self.client.open(f"read workflow run {run_id} of {repository}", PERMISSIONS) as api:
            run = get_run(api, repository, run_id)
        if not run.is_of(repository):
            return Missing(f"the commit of workflow run {run_id} is not of {repository}")
        found = self._of_run(run)
        if found is not None:
            results, notes = found
            return Found(results, run.head_sha, run.id, run.created_at, None, notes=notes)
        nothing = f"workflow run {run_id} has no artifact named {self.search.artifact}"
        return Missing(self.notes[0] if self.notes else nothing, tuple(self.notes[1:]))

    def nearest(self, start: Start) -> Found | Missing:
        """Return the results of the nearest commit with results."""
        from github import UnknownObjectException

        search = self.search
        with self.client.open(
            f"look for a baseline on {search.base_branch} of {search.repository}", PERMISSIONS
        ) as api:
            # A branch that belongs to another pull request has no trusted runs.
            branches = dict.fromkeys((search.base_branch, search.default_branch or search.base_branch))
            workflows = [Workflow(api, search.repository, search.workflow, branch) for branch in branches]
            line = CommitLine(api, search.repository, start.commit, search.clone, self._request)
            try:
                for run, distance in self._runs(workflows, line):
                    self._count()
                    if found := self._of_run(run):
                        results, notes = found
                        between = line.between(run.head_sha)
                        return Found(results, run.head_sha, run.id, run.created_at, distance, start, between, notes)
            except UnknownObjectException:
                return Missing(
                    f"GitHub does not find workflow {search.workflow} in {search.repository}, or the token may not "
                    "see it; the file must be on the default branch, and the job needs actions: read"
                )
            except _SpentError as spent:
                self.notes.append(f"{spent}; name a run with the input baseline")
        return Missing(self._reason(start), tuple(self.notes))

    def _runs(self, workflows: Sequence[Workflow], line: CommitLine) -> Iterator[tuple[WorkflowRun, int]]:
        """Yield the trusted runs of the start and its ancestors, with their distances: the nearest one first."""
        self._request()
        # Usually the start has a run.
        for run in self._new(workflows[0].runs_of(line.start)):
            yield run, 0
        line.look_back()
        for workflow in workflows:
            waiting, page = list(TRUSTED_EVENTS), 1
            while waiting:
                listed: list[WorkflowRun] = []
                for event in tuple(waiting):
                    self._request()
                    runs, more = workflow.trusted_runs(event, page)
                    listed += self._new(runs)
                    if not more:
                        waiting.remove(event)
                newest = sorted(listed, key=lambda run: (run.created_at, run.id), reverse=True)
                yield from line.sorted(newest)
                page += 1

    def _new(self, runs: Iterable[WorkflowRun]) -> Iterator[WorkflowRun]:
        for run in runs:
            if run.id not in self._listed and str(run.id) != self.search.own_run:
                self._listed.add(run.id)
                yield run

    def _count(self) -> None:
        limits = self.search.limits
        if self._near >= limits.runs:
            raise _SpentError(f"the search ended after {counted(self._near, 'run')}, its limit")
        if self._tried >= limits.downloads:
            raise _SpentError(f"the search ended after {counted(self._tried, 'download')}, its limit")
        if time.monotonic() - self._begun > limits.total_s:
            raise _SpentError(f"the search ended after {limits.total_s:g} s, its limit")
        self._near += 1

    def _request(self) -> None:
        if self._asked >= self.search.limits.requests:
            raise _SpentError(f"the search ended after {counted(self._asked, 'request')} to GitHub, its limit")
        self._asked += 1

    def _of_run(self, run: WorkflowRun) -> tuple[Results, tuple[str, ...]] | None:
        """Return the first usable results of a run with all notes; ``notes`` get the problems of others."""
        self._request()
        try:
            with self.client.open(f"list the artifacts of workflow run {run.id}", PERMISSIONS) as api:
                artifacts = artifacts_named(api, self.search.repository, run.id, self.search.artifact)
        except GithubError as error:
            self._pass_over(error, str(error))
            return None
        if not artifacts and run.is_going_on:
            self.notes.append(f"workflow run {run.id} (commit {short(run.head_sha)}) has not ended yet")
        for artifact in artifacts:
            if self._tried >= self.search.limits.downloads:
                break
            self._seen += 1
            try:
                results = self._results(artifact, run)
            except (UnusableArtifactError, GithubError) as error:
                where = f"artifact {artifact.name} of workflow run {run.id} (commit {short(run.head_sha)})"
                why = error.reason if isinstance(error, UnusableArtifactError) else str(error)
                self._pass_over(error, f"{where} cannot be used: {why}")
                continue
            return results, tuple(self.notes)
        return None

    def _results(self, artifact: Artifact, run: WorkflowRun) -> Results:
        if artifact.expired:
            self._expired += 1
        else:
            self._tried += 1
        report = DownloadedReport.download(self.client, self.search.repository, artifact, self.search.limits.artifact)
        results = report.results(parse_results)
        if reason := why_no_baseline(results):
            raise UnusableArtifactError(reason)
        if results.run.commit not in {None, run.head_sha}:
            raise UnusableArtifactError("its results are of another commit")
        if refusal := self.accept(results):
            raise UnusableArtifactError(refusal)
        return results

    def _pass_over(self, error: Exception, note: str) -> None:
        """Add the problem of one run to the notes, unless it concerns all runs."""
        if isinstance(error, GithubError) and error.status in _FINAL:
            raise error
        self.notes.append(shortened(note, _MAX_NOTE))

    def _reason(self, start: Start) -> str:
        workflow, branch, name = self.search.workflow, self.search.base_branch, self.search.artifact
        if not self._listed:
            return (
                f"{workflow} has not run on {branch} yet, which is normal the first time; later runs "
                "are compared with its first run"
            )
        if not self._near:
            return f"no run of {workflow} on {branch} is of {start.place} or of a commit before it"
        runs = counted(self._near, "run")
        near = f"{runs} of {workflow} on {branch} {'is' if self._near == 1 else 'are'} near enough"
        if not self._seen:
            return (
                f"{near}, but there is no artifact named {name}: the workflow must upload the report directory "
                "under that name, with actions/upload-artifact"
            )
        if self._expired == self._seen:
            return f"{near}, but all artifacts named {name} have expired"
        return f"{near}, but no artifact named {name} can be used"
