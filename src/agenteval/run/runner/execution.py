"""What came of running a plan, whether agents were asked or recorded traces were read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agenteval.core.llm.gateway import Gateway
from agenteval.results.archive import Archive, InMemory
from agenteval.results.model import CaseResult, RunUsage, Summary, UsedPlugin
from agenteval.suite.model import Fingerprints

if TYPE_CHECKING:
    from agenteval.results.analysis.answers import EvaluatedAnswer


@dataclass(frozen=True)
class Execution:
    """The cases that finished; one that was under way when a signal came is missing.

    Attributes:
        cases: by suite path, in the order of the suite; perhaps only outlines of some, see
        archive: where they are in full.
        pool_in_archive: the archive has the run's own entry of the pool; else it can be made of the cases.
        answers: for suites that want to know something of the run as a whole: what analyses need, by suite path.
        earlier_s: as much of the duration, in seconds, as was before the run was interrupted.
        fingerprints: by case id.
        asked: what asking models took, which is part of the summary.
        total: cases that were to run.
        signal: the signal that ended the run early.
        unfinished: cases that did not come to their end because the time was up.
        plugins: installed packages whose metrics scored the answers.
        nothing_to_check: no metric could say anything about any case, so no agent was called.
    """

    run_id: str
    started: float
    duration_s: float
    cases: Mapping[str, Sequence[CaseResult]]
    summary: Summary
    asked: RunUsage
    total: int
    pool_in_archive: bool = False
    earlier_s: float = 0.0
    fingerprints: Mapping[str, Fingerprints] = field(default_factory=dict)
    answers: Mapping[str, Sequence[EvaluatedAnswer]] = field(default_factory=dict)
    archive: Archive = field(default_factory=InMemory)
    signal: int | None = None
    unfinished: int = 0
    nothing_to_check: bool = False
    warnings: tuple[str, ...] = ()
    plugins: tuple[UsedPlugin, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether everything came to its end."""
        return self.signal is None and not self.unfinished


def asked_models(gateway: Gateway) -> RunUsage:
    """What asking models took, to judge or to answer."""
    return RunUsage(
        input_tokens=gateway.input_tokens,
        output_tokens=gateway.output_tokens,
        llm_calls=gateway.budget.calls,
        cost_usd=gateway.budget.cost_usd,
    )


def budget_warnings(gateway: Gateway) -> tuple[str, ...]:
    """What a spent or powerless budget means for the results."""
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
