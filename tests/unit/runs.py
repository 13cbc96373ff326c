"""Builds results of runs for tests; values that a test does not set are ordinary ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agenteval.gate.run_scores import baseline_run
from agenteval.results.case import (
    CaseResult,
    CaseStatus,
    IterationResult,
    NotAsked,
    NotAskedCause,
    Score,
    SuiteResult,
    TurnResult,
)
from agenteval.results.model import Results, Run, Tool
from agenteval.results.rollup import mean, mean_score, summarise
from agenteval.suite.model import Fingerprints

SUITE = "agent.yaml"


def score(id_: str = "numeric", value: float | None = 1.0, passed: bool | None = True, **more: Any) -> Score:
    return Score(id=id_, kind="standard", score=value, passed=passed, **{"status": "scored", **more})


def skipped(id_: str = "numeric") -> Score:
    return score(id_, None, None, status="skipped", reason="the case has no ground_truth")


def broken(id_: str = "numeric", **more: Any) -> Score:
    return score(id_, None, None, status="error", error="boom", **more)


def not_asked(id_: str = "quality", cause: NotAskedCause = "limit", **more: Any) -> Score:
    reason = NotAsked(cause=cause, limit=f"{cause} of 5 calls")
    return score(id_, None, None, status="skipped", reason="not asked", not_asked=reason, **more)


def turn(*scores: Score, index: int = 0, response: str | None = "answer", **more: Any) -> TurnResult:
    return TurnResult(
        index=index, input=f"question {index}", ground_truth=None, response=response, scores=list(scores), **more
    )


def iteration(status: CaseStatus, *turns: TurnResult, index: int = 0) -> IterationResult:
    return IterationResult(index=index, status=status, score=mean_score(turns), turns=list(turns))


def case(
    name: str,
    status: CaseStatus = "passed",
    scores: Sequence[Mapping[str, float]] = ({"numeric": 1.0},),
    response: str = "answer",
    suite: str = SUITE,
) -> CaseResult:
    """A case with one iteration for each mapping of metric to score; a score of 0.5 passes."""
    iterations = [
        iteration(
            status,
            turn(*(score(key, value, value >= 0.5) for key, value in found.items()), response=response),
            index=index,
        )
        for index, found in enumerate(scores)
    ]
    return CaseResult(
        id=f"{suite}::{name}",
        name=name,
        status=status,
        score=mean([item.score for item in iterations]),
        iterations=iterations,
    )


def results(
    *cases: CaseResult,
    run_id: str = "now",
    fingerprints: Mapping[str, str] | None = None,
    metrics: Mapping[str, Mapping[str, str]] | None = None,
    suite: str = SUITE,
) -> Results:
    """A run of one suite.

    ``fingerprints`` of questions and of ``metrics`` are by case name; cases without one have the question "same".
    """
    run = Results(
        tool=Tool(version="0"),
        run=Run(
            id=run_id,
            started_at="2026-01-01T00:00:00.000Z",
            finished_at="2026-01-01T00:00:01.000Z",
            duration_s=1.0,
            complete=True,
            commit="c" * 40,
            ref="refs/heads/main",
        ),
        summary=summarise(cases),
        suites=[SuiteResult(path=suite, name="s", format="holodeck", fingerprint="f", cases=list(cases))],
    )
    prints = {
        case.id: Fingerprints((fingerprints or {}).get(case.name, "same"), (metrics or {}).get(case.name, {}))
        for case in cases
    }
    return run.model_copy(update={"baseline_runs": [baseline_run(run, prints)]})
