"""Finds cases without an applicable metric before the agent is called."""

from __future__ import annotations

from agenteval.core.errors import Kind, Problem
from agenteval.metrics.base import requirements
from agenteval.metrics.scoring import MetricCatalog
from agenteval.results.analysis.aggregate import has_weight
from agenteval.suite.model import Case, MetricConfig, Suite

# Warnings of a suite that a message repeats.
_MOST_WARNINGS = 2


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


def why_unchecked(suite: Suite, case: Case) -> Problem:
    """Return why no metric applies to a case and to all others of its suite, at the first case."""
    if any(_counts(metric, case) for metric in case.all_metrics):
        message = "no case has a `ground_truth` for the metrics to compare with; add one, or a metric that needs none"
    else:
        which = " with a weight above 0" if case.all_metrics else ""
        message = f"no case has an enabled metric{which}; add a metric, or enable one"
    # Warnings say what of the suite is not used.
    message = "; ".join((message, *suite.warnings[:_MOST_WARNINGS]))
    return Problem(message, file=suite.path, line=case.line, kind=Kind.GROUND_TRUTH)
