"""Where the money and the time of a run went, as rows of texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest

from agenteval.report.view import view
from agenteval.report.view.comparison_rows import resource_rows
from agenteval.report.view.run_cost import explanations
from agenteval.results.case import CaseResult
from agenteval.results.model import Results

_MOST_NAMED = 3
_MS = 1000


@dataclass(frozen=True, slots=True)
class Spent:
    """One line: what, in this run, on the other side, and what explains it."""

    what: str
    here: str
    before: str = ""
    note: str = ""


def spending(results: Results) -> tuple[Spent, ...]:
    """Return the lines; those without a value are left out."""
    # Of a large run, not all cases are in memory: which were slow, and what they cost, is in the HTML report.
    cases = [case for _, case in results.cases()] if view.has_all_cases(results) else []
    return (*_compared(results), *_totals(results, cases), *_cases(cases))


def _compared(results: Results) -> Iterator[Spent]:
    comparison = results.comparison
    notes = list(explanations(comparison.resources)) if comparison else []
    for row in resource_rows(comparison) if comparison else ():
        limit = f", {row.allowed} allowed" if row.allowed else ""
        change = f"{row.change}{limit}" if row.change else ""
        about = "; ".join([change, *(notes if row.name.startswith("cost") else [])]).strip("; ")
        yield Spent(
            row.name if row.name.endswith("answer") else f"{row.name} per answer", row.after, row.before, about
        )


def _totals(results: Results, cases: Sequence[CaseResult]) -> Iterator[Spent]:
    usage = results.summary.usage
    judges = sum(score.cost_usd or 0.0 for case in cases for score in case.scores)
    if usage.cost_usd:
        split = f"judges {view.money(judges)}" if judges else ""
        yield Spent("cost", view.money(usage.cost_usd), note=split)
    if usage.input_tokens or usage.output_tokens:
        yield Spent("tokens", f"{usage.input_tokens:,} in, {usage.output_tokens:,} out")
    if usage.llm_calls or usage.cached_calls:
        yield Spent("calls of models", f"{usage.llm_calls:,}", note=view.from_cache(usage))
    yield Spent("time", view.duration(results.run.duration_s))
    if retries := sum(turn.retries for case in cases for turn in case.turns):
        yield Spent("retries", f"{retries:,}")


def _cases(cases: Sequence[CaseResult]) -> Iterator[Spent]:
    slowest = _largest({case.name: _seconds(case) for case in cases})
    if slowest:
        yield Spent("slowest cases", ", ".join(f"{name} {view.duration(value)}" for name, value in slowest))
    dearest = _largest({case.name: _cost(case) for case in cases})
    if dearest:
        yield Spent("dearest cases", ", ".join(f"{name} {view.money(value)}" for name, value in dearest))


def _largest(values: dict[str, float]) -> list[tuple[str, float]]:
    return [item for item in nlargest(_MOST_NAMED, values.items(), key=lambda item: item[1]) if item[1] > 0]


def _seconds(case: CaseResult) -> float:
    return sum(turn.latency_ms or 0.0 for turn in case.turns) / _MS / max(1, len(case.iterations))


def _cost(case: CaseResult) -> float:
    agent = sum(turn.usage.cost_usd or 0.0 for turn in case.turns if turn.usage)
    return (agent + sum(score.cost_usd or 0.0 for score in case.scores)) / max(1, len(case.iterations))
