"""The cost of a confirmation, and its limits."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agenteval.compare.policy import ConfirmationLimits
from agenteval.core.llm.budget import Limits


@dataclass(frozen=True)
class Spent:
    """The cost of confirmation runs.

    Attributes:
        calls: iterations of cases, of both sides together.
        cost_usd: cost of agents and judges in US dollars, as far as it is known.
    """

    calls: int = 0
    cost_usd: float = 0.0

    def plus(self, other: Spent) -> Spent:
        """Return the sums."""
        return Spent(self.calls + other.calls, self.cost_usd + other.cost_usd)


def refusal(limits: ConfirmationLimits, spent: Spent, wanted: int, run_calls: int, call_usd: float) -> str:
    """Return why the limits do not allow further calls; empty if they do."""
    calls = f"{spent.calls} calls were made, {wanted} more are needed"
    if limits.runs is not None and spent.calls + wanted > limits.runs * run_calls:
        return _reached("runs", limits.runs, f"{calls}; one run of the suite has {run_calls}")
    if limits.calls is not None and spent.calls + wanted > limits.calls:
        return _reached("calls", limits.calls, calls)
    usd = wanted * call_usd
    if limits.cost_usd is not None and spent.cost_usd + usd > limits.cost_usd:
        cost = f"{spent.cost_usd:.2f} USD were spent, about {usd:.2f} USD more are needed"
        return _reached("cost_usd", limits.cost_usd, cost)
    return ""


def narrowed(models: Limits, limits: ConfirmationLimits, spent: Spent) -> Limits:
    """Return limits of model calls that also keep within the limits of the confirmation."""
    if limits.cost_usd is None:
        return models
    left = max(0.0, limits.cost_usd - spent.cost_usd)
    return replace(models, max_cost_usd=left if models.max_cost_usd is None else min(left, models.max_cost_usd))


def _reached(name: str, limit: float, why: str) -> str:
    return f"`max_confirmation: {{{name}: {limit:g}}}` ended the confirmation ({why}); raise it to finish"
