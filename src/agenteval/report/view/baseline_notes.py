"""Notes about a comparison: age of the baseline, iterations, conditions of the gate, the smallest detectable drop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from agenteval.compare.phrases import points
from agenteval.report.view.view import count, once
from agenteval.results.comparison import Comparison
from agenteval.results.model import Results

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_METRICS = 3


def age(created_at: str, now: str) -> str:
    """Return the age of a baseline at the start of a run: ``3 days old``; empty if unknown.

    Args:
        created_at: time of the baseline, ISO 8601.
        now: start of the run, ISO 8601.
    """
    try:
        seconds = (datetime.fromisoformat(now) - datetime.fromisoformat(created_at)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return ""
    if seconds < 0:
        return ""
    for length, name in ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute")):
        if seconds >= length:
            return f"{count(int(seconds // length), name)} old"
    return "less than a minute old"


def size(results: Results) -> str:
    """Return ``118 cases × 3``: the number of cases and of their iterations."""
    numbers = _iteration_counts(results)
    cases = count(results.summary.cases, "case")
    if not numbers or max(numbers) == 1:
        return cases
    fewest, most = min(numbers), max(numbers)
    times = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"
    return f"{cases} × {times}{_unneeded(results)}"


def repetitions(results: Results) -> str:
    """Return the number of iterations of the cases and of baseline runs."""
    numbers = _iteration_counts(results)
    parts = []
    if numbers:
        fewest, most = min(numbers), max(numbers)
        text = count(most, "iteration") if fewest == most else f"{fewest} to {most:,} iterations"
        parts.append(f"{text}{_unneeded(results)}")
    if (amount := _baseline_runs(results)) is not None:
        parts.append(count(amount, "baseline run"))
    return ", ".join(parts)


def runs(results: Results) -> str:
    """Return the number of earlier runs that the run was compared with: ``3 runs``; empty if unknown."""
    amount = _baseline_runs(results)
    return "" if amount is None else count(amount, "run")


def _baseline_runs(results: Results) -> int | None:
    amount = results.comparison.policy.get("baseline_runs") if results.comparison else None
    return amount if isinstance(amount, int) else None


@once
def _iteration_counts(results: Results) -> frozenset[int]:
    counts = {case.planned for suite in results.suites for case in suite.cases if case.iterations}
    return frozenset(counts)


def _unneeded(results: Results) -> str:
    """Return how many iterations a staged run left out."""
    cases = [case for suite in results.suites for case in suite.cases]
    unneeded, planned = sum(case.unneeded for case in cases), sum(case.planned for case in cases)
    return f" ({unneeded:,} of {planned:,} were not needed)" if unneeded else ""


def smallest_drops(comparison: Comparison) -> str:
    """Return the smallest drop of each gating metric that is detected with a probability of 80 %."""
    found = [
        (metric.detectable_drop, metric.id)
        for metric in comparison.metrics
        if metric.gating and metric.detectable_drop is not None
    ]
    if not found:
        return ""
    if len({round(1000 * drop) for drop, _ in found}) == 1:
        return f"a drop of {points(found[0][0])} would be detected"
    named = [f"{points(drop)} in {name}" for drop, name in sorted(found)[:_METRICS]]
    more = f", and {len(found) - _METRICS} more metrics" if len(found) > _METRICS else ""
    return f"a drop of {', '.join(named)}{more} would be detected"


def gate_needs(comparison: Comparison) -> tuple[str, ...]:
    """Return the conditions under which a comparison fails the gate, one sentence each."""
    policy = comparison.policy
    match policy.get("name"):
        case "statistics":
            return tuple(_statistics(policy))
        case "any-flip":
            drop = f"a metric's mean drops by more than {_points(policy, 'tolerance')}"
            return (f"The gate fails if any case that passed now fails, or if {drop}.",)
        case "mean-drop":
            return (f"The gate fails if a metric's mean drops by more than {_points(policy, 'tolerance')}.",)
        case "threshold":
            return (f"The gate checks only the share of passed cases: {policy.get('reason')}.",)
    return ()


def _statistics(policy: Mapping[str, Any]) -> Iterator[str]:
    match policy.get("confirm"):
        case "off":
            yield "Nothing ran again, so a suspected regression is unproven unless the results alone prove it."
        case "rerun":
            yield (
                "The gate fails if a drop of a metric's mean, or of a single case, shows again in a second run. "
                "It was compared with earlier runs, so drift cannot be told from regression."
            )
        case _:
            yield (
                "Earlier runs only raise suspicion. The gate fails if a metric's mean, or a single case, is proven "
                "worse side by side with the base commit."
            )


def _points(policy: Mapping[str, Any], name: str) -> str:
    value = policy.get(name)
    return points(value) if isinstance(value, int | float) else "the tolerance"
