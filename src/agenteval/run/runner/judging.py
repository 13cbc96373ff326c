"""Applies the limits of suites to their judges: finds the cases that are not judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenteval.core.llm.errors import NotAskedError
from agenteval.metrics.resources.judge_sample import JudgeSample, trace_identity
from agenteval.run.plan import PlannedCase
from agenteval.suite.model import Case

if TYPE_CHECKING:
    from agenteval.suite.evaluation import JudgeLimits


class JudgedCases:
    """The cases of a run that are judged; every case is added once before the first one runs.

    Args:
        seed: seed of the run.
    """

    def __init__(self, seed: int | None) -> None:
        self._sample = JudgeSample(seed)

    def add(self, item: PlannedCase) -> None:
        """Add a case."""
        limits = _limits(item.case)
        if limits:
            self._sample.add(item.suite.path, limits[0], _identity(item), len(limits) * item.asked)

    def why_not(self, item: PlannedCase) -> NotAskedError | None:
        """Return why a case is not judged; ``None`` if it is, or if it has no judge with limits."""
        limits = _limits(item.case)
        return self._sample.left_out(item.suite.path, limits[0], _identity(item)) if limits else None


def _limits(case: Case) -> list[JudgeLimits]:
    """Return the limits of each judge of a case; the judges of a suite share them."""
    return [metric.judge_limits for metric in case.all_metrics if metric.judge_limits is not None]


def _identity(item: PlannedCase) -> str:
    """Return the same identity in every run; a repeated case has that of the case it repeats."""
    return item.origin or item.case.id if item.recorded is None else trace_identity(item.recorded.record)
