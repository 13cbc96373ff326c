"""The cost of a confirmation, and its limits."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from agenteval.compare.policy import ConfirmationLimits
from agenteval.compare.regression.settings import GateSettings
from agenteval.core.llm.budget import Limits
from agenteval.core.statistics import ROUNDING


@dataclass(frozen=True)
class Spent:
    """The cost of confirmation runs.

    Attributes:
        runs: whole runs of the suite, of both sides together; a fraction for some of their iterations.
        calls: iterations of cases, whole runs included.
        cost_usd: cost of agents and judges in US dollars, as far as it is known.
    """

    runs: float = 0.0
    calls: int = 0
    cost_usd: float = 0.0

    def plus(self, other: Spent) -> Spent:
        """Return the sums."""
        return Spent(self.runs + other.runs, self.calls + other.calls, self.cost_usd + other.cost_usd)


def refusal(limits: ConfirmationLimits, spent: Spent, wanted: Spent, call_usd: float) -> str:
    """Return why the limits do not allow further runs; empty if they do.

    Args:
        limits: the limits of the whole confirmation.
        spent: the cost so far.
        wanted: the runs and calls of the next request.
        call_usd: expected cost of one call.
    """
    if limits.runs is not None and wanted.runs and spent.runs + wanted.runs > limits.runs + ROUNDING:
        return _reached("runs", limits.runs, f"{spent.runs:.3g} were made, {wanted.runs:.3g} more are needed")
    if limits.calls is not None and spent.calls + wanted.calls > limits.calls:
        return _reached("calls", limits.calls, f"{spent.calls} were made, {wanted.calls} more are needed")
    usd = wanted.calls * call_usd
    if limits.cost_usd is not None and spent.cost_usd + usd > limits.cost_usd:
        cost = f"{spent.cost_usd:.2f} USD were spent, about {usd:.2f} USD more are needed"
        return _reached("cost_usd", limits.cost_usd, cost)
    return ""


def narrowed(models: Limits, limits: ConfirmationLimits, spent: Spent) -> Limits:
    """Return limits of model calls that also keep within the limits of the confirmation.

    Args:
        models: the limits that the run has left.
        limits: the limits of the whole confirmation.
        spent: the cost so far.
    """
    if limits.cost_usd is None:
        return models
    left = max(0.0, limits.cost_usd - spent.cost_usd)
    return replace(models, max_cost_usd=left if models.max_cost_usd is None else min(left, models.max_cost_usd))


def _reached(name: str, limit: float, why: str) -> str:
    return f"`max_confirmation: {{{name}: {limit:g}}}` ended the confirmation ({why}); raise it to finish"


def calls_of_a_run(iterations: Iterable[int], settings: GateSettings) -> int:
    """Return the calls of one run of the head-to-head, of one side: small suites run more iterations.

    Args:
        iterations: iterations of each case in one run of the suite.
        settings: the limits of the gate.
    """
    calls = max(sum(iterations), 1)
    factor = math.ceil(settings.head_to_head_calls / calls)
    return calls * min(max(factor, 1), settings.head_to_head_factor)
