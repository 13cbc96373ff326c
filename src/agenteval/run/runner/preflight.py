"""Finds cases without an applicable metric before the agent is called."""

from __future__ import annotations

from agenteval.metrics.base import requirements
from agenteval.metrics.scoring import MetricCatalog, skipped_score
from agenteval.results.analysis.aggregate import has_weight
from agenteval.results.case import CaseResult, IterationResult, TurnResult
from agenteval.run.runner.scoring import case_of
from agenteval.suite.model import Case, MetricConfig, Suite


def checkable(case: Case, catalog: MetricCatalog) -> bool:
    """Return whether any metric applies to a case, according to the suite alone.

    Every metric of the case is built, including those that do not apply and those without weight.

    Raises:
        ConfigError: a requirement of a metric is not installed.
    """
    for metric in case.all_metrics:
        catalog.get(metric)
    applicable = [
        "ground_truth" not in requirements(catalog.get(metric)) or turn.ground_truth is not None
        for turn in case.turns
        for metric in turn.metrics
        if _counts(metric, case)
    ]
    return any(applicable) or any(_counts(metric, case) for metric in case.metrics)


def _counts(metric: MetricConfig, case: Case) -> bool:
    """Return whether a metric can affect the status of a case: in an aggregate, it needs a weight."""
    return case.aggregate is None or metric.requested_by == "config" or has_weight(metric.id, case.aggregate)


def skipped(case: Case) -> CaseResult:
    """Return the result of a case without an applicable metric; the agent is not called."""
    turns = [
        TurnResult(
            index=index,
            input=turn.input,
            ground_truth=turn.ground_truth,
            response=None,
            scores=[skipped_score(metric, "the case has no ground_truth") for metric in turn.metrics],
        )
        for index, turn in enumerate(case.turns)
    ]
    return case_of(case, [IterationResult(index=0, status="skipped", score=None, turns=turns)])


def why_unchecked(suite: Suite, case: Case) -> str:
    """Return why no metric applies to a case, as a message with the position of the case."""
    what = (
        "has no `ground_truth` for its metrics to compare with"
        if any(_counts(metric, case) for metric in case.all_metrics)
        else "has no enabled metric with a weight above 0"
        if case.all_metrics
        else "has no enabled metric"
    )
    line = f":{case.line}" if case.line else ""
    return f"{suite.path}{line}: case {case.name!r} {what}, and neither has any other case; nothing was run"
