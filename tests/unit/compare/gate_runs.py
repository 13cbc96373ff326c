"""Builds runs with a history, as input of the gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from tests.unit.runs import case, results

from agenteval.compare.comparer import Comparer
from agenteval.compare.policy import ComparePolicy
from agenteval.compare.regression.settings import GateSettings
from agenteval.results.case import CaseResult
from agenteval.results.comparison import ComparedCase, Comparison
from agenteval.results.model import Results

TODAY = date(2026, 3, 1)
K = 3


def scored(name: str, *scores: float, metric: str = "numeric") -> CaseResult:
    """A case with one iteration for each score; its status is that of the majority."""
    passing = sum(score >= 0.5 for score in scores)
    return case(name, "passed" if 2 * passing > len(scores) else "failed", [{metric: score} for score in scores])


def steady(count: int = 20, **others: Sequence[float]) -> list[CaseResult]:
    """So many cases that always pass, but for those whose scores are given."""
    names = [f"c{number:02}" for number in range(count)]
    return [scored(name, *others.get(name, (1.0,) * K)) for name in names]


def dated(run: Results, day: int) -> Results:
    """A run of a day in January 2026."""
    moment = f"2026-01-{day:02}T00:00:00.000Z"
    pool = [entry.model_copy(update={"created_at": moment}) for entry in run.pool]
    own = run.run.model_copy(update={"started_at": moment})
    return run.model_copy(update={"run": own, "pool": pool})


def base_run(day: int, cases: Sequence[CaseResult], **keys: Any) -> Results:
    """A run of the base branch."""
    return dated(results(*cases, run_id=f"base-{day}", **keys), day)


def history(*runs: Results) -> Results:
    """The last run with all of them in its pool."""
    return runs[-1].model_copy(update={"pool": [entry for run in runs for entry in run.pool]})


def past(count: int, cases: Sequence[CaseResult] | None = None, **keys: Any) -> Results:
    """A history of so many runs that all went alike."""
    chosen = steady() if cases is None else cases
    return history(*(base_run(day, chosen, **keys) for day in range(1, count + 1)))


def policy(settings: Mapping[str, Any] | None = None, **fields: Any) -> ComparePolicy:
    """The default policy with some fields changed."""
    return ComparePolicy(settings=GateSettings(**(settings or {})), **fields)


def comparer(now: Results, then: Results, chosen: ComparePolicy | None = None) -> Comparer:
    """A comparison that can be asked what it needs."""
    known = {item.id for _, item in now.cases()}
    return Comparer(now, then, known, chosen or ComparePolicy(), TODAY)


def compared(now: Results, then: Results, chosen: ComparePolicy | None = None) -> Comparison:
    """A comparison without any confirmation run."""
    return comparer(now, then, chosen).decide()


def case_named(comparison: Comparison, name: str) -> ComparedCase:
    """One case of a comparison."""
    (found,) = (item for item in comparison.cases if item.name == name)
    return found
