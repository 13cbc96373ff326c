"""Notes about a comparison: age of the baseline, iterations, conditions of the gate, the smallest detectable drop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from agenteval.report.view.comparison_rows import points
from agenteval.report.view.view import count, once
from agenteval.results.comparison import Comparison
from agenteval.results.model import Results

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_METRICS = 3
# With fewer runs, a regressed case cannot be distinguished from a flaky one.
_RUNS_FOR_CASES = 3


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


def repetitions(results: Results) -> str:
    """Return the number of iterations of the cases and of baseline runs."""
    numbers = _iteration_counts(results)
    parts = []
    if numbers:
        fewest, most = min(numbers), max(numbers)
        parts.append(count(most, "iteration") if fewest == most else f"{fewest} to {most:,} iterations")
    runs = results.comparison.policy.get("baseline_runs") if results.comparison else None
    if isinstance(runs, int):
        parts.append(count(runs, "baseline run"))
    return ", ".join(parts)


@once
def _iteration_counts(results: Results) -> frozenset[int]:
    counts = {len(case.iterations) for suite in results.suites for case in suite.cases}
    return frozenset(counts - {0})


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
    given = policy.get("parameters")
    parameters: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    if policy.get("confirm") == "off":
        proof = f"in this run (p ≤ {_rate(parameters, 'alpha_single')})"
    else:
        proof = f"and a confirmation run confirms the drop (together p ≤ {_rate(parameters, 'alpha_aggregate')})"
    yield f"The gate fails if a metric's mean drops significantly {proof}."
    if policy.get("confirm") != "off":
        yield (
            "It also fails if a single case regresses and further iterations confirm the regression "
            f"(p ≤ {_rate(parameters, 'alpha_case')})."
        )
    runs = policy.get("baseline_runs")
    if isinstance(runs, int) and runs < _RUNS_FOR_CASES:
        yield (
            f"A regression of a single case can be detected only with {_RUNS_FOR_CASES} baseline runs; "
            f"there {'is' if runs == 1 else 'are'} {runs}."
        )


def _rate(parameters: Mapping[str, Any], name: str) -> str:
    value = parameters.get(name)
    return f"{value:g}" if isinstance(value, int | float) else "?"


def _points(policy: Mapping[str, Any], name: str) -> str:
    value = policy.get(name)
    return points(value) if isinstance(value, int | float) else "the tolerance"
