"""The outcome of running a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agenteval.core.llm.gateway import Gateway
from agenteval.results.archive import Archive, InMemory
from agenteval.results.model import CaseResult, RunUsage, Summary, UsedPlugin

if TYPE_CHECKING:
    from agenteval.results.analysis.answers import EvaluatedAnswer


@dataclass(frozen=True)
class Execution:
    """The cases that finished; one that was under way when a signal came is missing.

    Attributes:
        cases: by suite path, in the order of the suite; large runs keep only what reports show.
        archive: reads all cases back in full.
        is_pooled: the run gets an entry of its own in its pool, for later statistical comparisons.
        answers: what analyses need, by path of each suite that defines one.
        earlier_s: the part of the duration, in seconds, before the run was interrupted.
        asked: usage of models, which is part of the summary.
        total: cases that were to run.
        signal: the signal that ended the run early.
        unfinished: number of cases that did not finish within the time limit.
        plugins: installed packages whose metrics scored the answers.
        nothing_to_check: no metric applies to any case, so no agent was called.
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
    archive: Archive = field(default_factory=InMemory)
    signal: int | None = None
    unfinished: int = 0
    nothing_to_check: bool = False
    warnings: tuple[str, ...] = ()
    plugins: tuple[UsedPlugin, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every case finished."""
        return self.signal is None and not self.unfinished


def budget_warnings(gateway: Gateway) -> tuple[str, ...]:
    """Return warnings about a budget that is used up or cannot be enforced."""
    warnings = []
    refused = gateway.budget.refused
    if refused:
        warnings.append(
            f"the budget for models is used up: {refused} calls were not made; "
            "what they would judge is skipped, and turns that a model was to answer are errors"
        )
    if gateway.unpriced and gateway.budget.limits.max_cost_usd is not None:
        names = ", ".join(sorted(gateway.unpriced))
        warnings.append(f"max_cost_usd does not hold for {names}: the price is not known")
    return tuple(warnings)
