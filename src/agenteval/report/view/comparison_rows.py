"""The statistics and the resources of a comparison, as rows of texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agenteval.report.view.view import NOTHING, count, money, number, signed
from agenteval.results.comparison import ComparedCase, ComparedMetric, ComparedResource, Comparison

_CERTAIN = 0.001
_LEAST_CHANGE = 0.005
_RESOURCES = {"latency_ms": "latency", "tokens": "tokens per answer", "cost_usd": "cost per answer"}


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """One metric of a comparison.

    Attributes:
        change: the difference of the means with its interval.
        basis: the number of cases, baseline runs and iterations.
        catches: the smallest detectable drop, and how to halve it.
    """

    id: str
    gating: bool
    verdict: str
    change: str
    p: str
    basis: str
    catches: str
    reason: str


def evidence_rows(comparison: Comparison) -> Iterator[EvidenceRow]:
    """Yield every metric that was compared by statistics."""
    for metric in comparison.metrics:
        if metric.interval is not None:
            yield EvidenceRow(
                id=metric.id,
                gating=metric.gating,
                verdict=metric.verdict,
                change=f"{signed(metric.difference)} ({metric.interval[0]:+.2f} to {metric.interval[1]:+.2f})",
                p=_p(metric.p),
                basis=_basis(metric),
                catches=_catches(metric),
                reason=metric.reason,
            )


@dataclass(frozen=True, slots=True)
class ResourceRow:
    """Time, tokens or cost per answer in both runs; ``change`` is empty if the baseline used none."""

    name: str
    before: str
    after: str
    change: str
    allowed: str
    exceeded: bool


def resource_rows(comparison: Comparison) -> tuple[ResourceRow, ...]:
    """Return the resources that both runs recorded."""
    return tuple(
        ResourceRow(
            name=_RESOURCES[resource.name],
            before=_amount(resource, resource.baseline),
            after=_amount(resource, resource.current),
            change=_share(resource.change),
            allowed="" if resource.allowed is None else f"+{resource.allowed:.0%}",
            exceeded=resource.exceeded,
        )
        for resource in comparison.resources
    )


def resource_changes(comparison: Comparison) -> str:
    """Return ``latency +50%, cost per answer +3%``; empty if nothing changed by as much as a percent."""
    changed = [
        f"{_RESOURCES[resource.name]} {_share(resource.change)}"
        for resource in comparison.resources
        if resource.exceeded or (resource.change is not None and abs(resource.change) >= _LEAST_CHANGE)
    ]
    return ", ".join(part.rstrip() for part in changed)


def points(share: float) -> str:
    """Return a difference of scores in percentage points."""
    text = f"{100 * share:.1f}".removesuffix(".0")
    return f"{text} point" if text == "1" else f"{text} points"


def resource_change(resource: ComparedResource) -> str:
    """Return ``latency 120 ms → 180 ms (+50 %, 20 % allowed)``."""
    before, after = _amount(resource, resource.baseline), _amount(resource, resource.current)
    change = _share(resource.change)
    allowed = "" if resource.allowed is None else f"{resource.allowed:.0%} allowed"
    details = ", ".join(part for part in (change, allowed) if part)
    return f"{_RESOURCES[resource.name]} {before} → {after}" + (f" ({details})" if details else "")


def history_note(case: ComparedCase) -> str:
    """Return the result of a case in the baseline runs; empty if unknown."""
    history = case.history
    if history is None:
        return ""
    passed = round(history.pass_rate * history.iterations)
    return f"passed {passed} of {count(history.iterations, 'iteration')} in {count(history.runs, 'baseline run')}"


def verdict_note(comparison: Comparison) -> str:
    """Return the result of a comparison without regressions, in words."""
    return "comparison unproven" if comparison.verdict == "unproven" else "no regressions"


def _share(change: float | None) -> str:
    return "" if change is None else f"{change:+.0%}"


def _p(p: float | None) -> str:
    if p is None:
        return NOTHING
    return f"< {_CERTAIN}" if p < _CERTAIN else f"{p:.2g}"


def _basis(metric: ComparedMetric) -> str:
    parts = [count(metric.n, "case")]
    if metric.units is not None and metric.units != metric.n:
        parts.append(count(metric.units, "unit"))
    if metric.runs is not None:
        parts.append(count(metric.runs, "baseline run"))
    if metric.iterations is not None:
        parts.append(count(metric.iterations, "iteration"))
    return ", ".join(parts)


def _catches(metric: ComparedMetric) -> str:
    if metric.detectable_drop is None:
        return NOTHING
    advice = f"; {metric.advice}" if metric.advice else ""
    return f"{points(metric.detectable_drop)}{advice}"


def _amount(resource: ComparedResource, value: float) -> str:
    if resource.name == "cost_usd":
        return money(value)
    if resource.name == "latency_ms":
        return f"{value:,.0f} ms" if value < 10_000 else f"{value / 1000:,.1f} s"
    return number(value) if value < 10 else f"{value:,.0f}"
