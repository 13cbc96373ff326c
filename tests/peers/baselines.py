"""Results in artifacts, and the search for them, as the tests of baselines use both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tests.peers.github_actions import StoredArtifact, StoredRun, zipped
from tests.peers.github_service import GithubService, History

from agenteval.github.artifacts import ArtifactLimits
from agenteval.github.baseline import Found, Missing, SearchLimits, Start
from agenteval.github.baseline_search import BaselineSearch
from agenteval.github.client import GitHubClient
from agenteval.results.case import CaseResult, IterationResult, Score, SuiteResult, TurnResult
from agenteval.results.model import Results, Run, RunUsage, Summary, Tool

ARTIFACT = "agenteval"
#: Pauses would only make tests slow; how long they are is tested where they are made.
LIMITS = SearchLimits(artifact=ArtifactLimits(pauses_s=(0.0, 0.0)))


def results(commit: str | None, *, complete: bool = True, run_id: str = "run") -> Results:
    """Results of a suite with one case, which passed."""
    moment = "2026-03-01T12:00:00Z"
    run = Run(id=run_id, started_at=moment, finished_at=moment, duration_s=1.0, complete=complete, commit=commit)
    summary = Summary(
        cases=1, passed=1, failed=0, errors=0, skipped=0, pass_rate=1.0, score=1.0, metrics={}, usage=RunUsage()
    )
    score = Score(id="equality", kind="standard", score=1.0, passed=True, status="scored")
    turn = TurnResult(index=0, input="hello", ground_truth="hello", response="hello", scores=[score])
    iteration = IterationResult(index=0, status="passed", score=1.0, turns=[turn])
    case = CaseResult(id="agent.yaml::a", name="a", status="passed", score=1.0, iterations=[iteration])
    suite = SuiteResult(path="agent.yaml", name="agent", format="holodeck", fingerprint="f", cases=[case])
    return Results(tool=Tool(version="0.1.0"), run=run, summary=summary, suites=[suite])


@dataclass
class Project:
    """A repository whose ``main`` has commits and a change that parts from it.

    Attributes:
        commits: of ``main``, nearest to the merge base first, which is the first of them.
        later: commits of ``main`` that the change has not seen.
        head: of the change.
    """

    github: GithubService
    history: History
    commits: list[str]
    later: list[str]
    head: str

    @classmethod
    def create(cls, github: GithubService, length: int = 6) -> Project:
        history = github.history()
        before = history.chain(history.root, length)
        later = history.chain(before[-1], 2)
        head = history.chain(before[-1], 2)[-1]
        history.main(later[-1])
        return cls(github, history, before[::-1], later, head)

    def run(self, commit: str, **details: Any) -> StoredRun:
        return self.github.actions.run(self.history.name, commit, **details)

    def artifact(self, run: StoredRun, data: bytes | None = None, **details: Any) -> StoredArtifact:
        """Good results of that run, if nothing else is given."""
        content = zipped(results(run.head_sha).model_dump_json().encode()) if data is None else data
        return self.github.actions.artifact(run, details.pop("name", ARTIFACT), content, **details)

    @property
    def base(self) -> Start:
        return Start(self.commits[0], "the merge base")

    def find(
        self,
        accept: Callable[[Results], str | None] = lambda _: None,
        client: GitHubClient | None = None,
        limits: SearchLimits = LIMITS,
        **changes: Any,
    ) -> Found | Missing:
        search = BaselineSearch(
            lambda: client or self.github.client(), self.history.name, "agenteval.yml", ARTIFACT, "main", self.base
        )
        return replace(search, limits=limits, **changes).find(accept)

    def found(self, **options: Any) -> Found:
        outcome = self.find(**options)
        assert isinstance(outcome, Found), outcome
        return outcome

    def missing(self, **options: Any) -> Missing:
        outcome = self.find(**options)
        assert isinstance(outcome, Missing), outcome
        return outcome
