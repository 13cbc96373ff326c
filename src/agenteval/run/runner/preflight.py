"""Finds cases without an applicable metric before the agent is called."""

from __future__ import annotations

from agenteval.metrics.base import requirements
from agenteval.metrics.scoring import MetricCatalog
from agenteval.results.model import CaseResult, IterationResult, Score, TurnResult
from agenteval.run.runner.scoring import case_of
from agenteval.suite.model import Case, Suite


def checkable(case: Case, catalog: MetricCatalog) -> bool:
    """Return whether any metric applies to a case, judging by the suite alone.

    Builds every metric of the case, including those that do not apply.

    Raises:
        ConfigError: a requirement of a metric is not installed.
    """
    applicable = [
        "ground_truth" not in requirements(catalog.get(metric)) or turn.ground_truth is not None
        for turn in case.turns
        for metric in turn.metrics
    ]
    applicable += [catalog.get(metric) is not None for metric in case.metrics]
    return any(applicable)


def skipped(case: Case) -> CaseResult:
    """Return the result of a case without an applicable metric; the agent is not called."""
    turns = [
        TurnResult(
            index=index,
            input=turn.input,
            ground_truth=turn.ground_truth,
            response=None,
            scores=[
                Score(
                    id=metric.id,
                    kind=metric.kind,
                    score=None,
                    threshold=metric.threshold,
                    passed=None,
                    status="skipped",
                    reason="the case has no ground_truth",
                )
                for metric in turn.metrics
            ],
        )
        for index, turn in enumerate(case.turns)
    ]
    return case_of(case, [IterationResult(index=0, status="skipped", score=None, turns=turns)])


def why_unchecked(suite: Suite, case: Case) -> str:
    """Return what such a case lacks."""
    what = (
        "has no `ground_truth` for its metrics to compare with"
        if any(turn.metrics for turn in case.turns)
        else "has no metric"
    )
    line = f":{case.line}" if case.line else ""
    return f"{suite.path}{line}: case {case.name!r} {what}, and neither has any other case; nothing was run"
