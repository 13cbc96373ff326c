"""The result of executing a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agenteval.core.errors import Problem
from agenteval.core.llm.gateway import Gateway
from agenteval.results.archive import Archive, InMemory
from agenteval.results.case import CaseResult
from agenteval.results.metric_use import MetricUse
from agenteval.results.model import UsedPlugin
from agenteval.results.summary import RunUsage, Summary

if TYPE_CHECKING:
    from agenteval.results.analysis.answers import EvaluatedAnswer


@dataclass(frozen=True)
class RunExecution:
    """The finished cases of a run; without cases that a signal interrupted.

    Attributes:
        cases: cases by suite path, in suite order; large runs keep only what reports show.
        metric_use: what the metrics of each suite measured, by suite path.
        archive: reads all cases back in full.
        is_pooled: whether the run gets an entry in its pool, for later statistical comparisons.
        answers: the answers that analyses need, by path of each suite that defines an analysis.
        earlier_s: the part of the duration before the run was interrupted, in seconds.
        asked: usage of models, which is part of the summary.
        total: number of planned cases.
        signal: the signal that ended the run early.
        unfinished: number of cases that did not finish within the time limit.
        refused_calls: number of calls to models that the budget did not allow.
        plugins: installed packages whose metrics scored the answers.
        agent_problems: why agents failed in all of their cases, or were too slow.
        agent_errors: the errors of cases that these explain.
        nothing_to_check: whether no metric applies to any case, so that no agent was called.
    """

    run_id: str
    started: float
    duration_s: float
    cases: Mapping[str, Sequence[CaseResult]]
    summary: Summary
    asked: RunUsage
    total: int
    is_pooled: bool = True
    earlier_s: float = 0.0
    answers: Mapping[str, Sequence[EvaluatedAnswer]] = field(default_factory=dict)
    metric_use: Mapping[str, MetricUse] = field(default_factory=dict)
    archive: Archive = field(default_factory=InMemory)
    signal: int | None = None
    unfinished: int = 0
    refused_calls: int = 0
    nothing_to_check: bool = False
    warnings: tuple[str, ...] = ()
    plugins: tuple[UsedPlugin, ...] = ()
    agent_problems: tuple[Problem, ...] = ()
    agent_errors: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every case finished."""
        return self.signal is None and not self.unfinished


def budget_warnings(gateway: Gateway) -> tuple[str, ...]:
    """Return warnings about a budget that is exhausted or cannot be enforced."""
    warnings = []
    refused = gateway.budget.refused
    if refused:
        warnings.append(
            f"the LLM budget is exhausted: {'1 call was' if refused == 1 else f'{refused} calls were'} not made; "
            "affected metrics are skipped; model-agent turns become errors"
        )
    if gateway.unpriced and gateway.budget.limits.max_cost_usd is not None:
        names = ", ".join(sorted(gateway.unpriced))
        warnings.append(f"max_cost_usd does not limit {names}: the price is not known")
    if gateway.estimated:
        names = ", ".join(sorted(gateway.estimated))
        warnings.append(
            f"{names} reported numbers of tokens that do not fit the length of question and answer; "
            "the tokens and the cost of these calls are estimates"
        )
    return tuple(warnings)
