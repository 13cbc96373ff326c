"""The statistics and the resources of a comparison, as rows of texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agenteval.compare.phrases import p_text, points
from agenteval.report.view.view import NOTHING, count, money, number, signed
from agenteval.results.comparison import ComparedCase, ComparedMetric, ComparedResource, Comparison

_CERTAIN = 0.001
_LEAST_CHANGE = 0.005
_CLEARED = 3
_RESOURCES = {"latency_ms": "latency", "tokens": "tokens per answer", "cost_usd": "cost per answer"}


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """One metric of a comparison.

    Attributes:
        change: the difference of the means with its interval.
        p: with the limit at or below which a drop is proven.
        basis: the number of cases, baseline runs and iterations.
        catches: the smallest detectable drop.
        hint: what would exclude smaller drops; empty if the run excludes small ones.
    """

    id: str
    gating: bool
    verdict: str
    change: str
    p: str
    basis: str
    catches: str
    reason: str
    hint: str = ""


def evidence_rows(comparison: Comparison) -> Iterator[EvidenceRow]:
    """Yield every metric that was compared by statistics."""
    for metric in comparison.metrics:
        if metric.interval is not None or (comparison.stage is not None and metric.gating):
            yield EvidenceRow(
                id=metric.id,
                gating=metric.gating,
                verdict=metric.verdict,
                change=_change(metric),
                p=_p(metric),
                basis=_basis(metric),
                catches=_catches(metric),
                reason=metric.reason.removeprefix(f"{metric.id} "),
                hint=_hint(metric),
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
    """Return the result of a comparison without a regressed case, in words; a cleared suspicion is among them."""
    if comparison.verdict == "regressed":
        return "no single case is proven worse"
    if comparison.verdict == "unproven":
        return "comparison unproven"
    cleared = [metric.reason for metric in comparison.metrics if metric.suspicious and metric.verdict == "unchanged"]
    return "; ".join(["nothing broke or fell", *cleared[:_CLEARED]])


def _share(change: float | None) -> str:
    return "" if change is None else f"{change:+.0%}"


def _change(metric: ComparedMetric) -> str:
    if metric.interval is None:
        return signed(metric.difference)
    return f"{signed(metric.difference)} ({metric.interval[0]:+.2f} to {metric.interval[1]:+.2f})"


def _p(metric: ComparedMetric) -> str:
    if metric.p is None:
        return NOTHING
    if metric.limit is not None:
        return p_text(metric.p, metric.limit).removeprefix("p ").removeprefix("= ")
    return f"< {_CERTAIN}" if metric.p < _CERTAIN else f"{metric.p:.2g}"


def _basis(metric: ComparedMetric) -> str:
    parts = [count(metric.n, "case")]
    if metric.units is not None and metric.units != metric.n:
        parts.append(count(metric.units, "unit"))
    if metric.runs is not None:
        parts.append(count(metric.runs, "baseline run"))
    if metric.iterations is not None:
        parts.append(count(metric.iterations, "iteration"))
    return ", ".join(parts)


def _hint(metric: ComparedMetric) -> str:
    if metric.finer is None:
        return ""
    excluded = f"about {count(metric.finer.iterations, 'iteration')} of each case would exclude more than"
    return f"Smaller drops could hide: {excluded} {points(metric.finer.bound)}"


def _catches(metric: ComparedMetric) -> str:
    if metric.detectable_drop is None:
        return NOTHING
    return points(metric.detectable_drop)


def _amount(resource: ComparedResource, value: float) -> str:
    if resource.name == "cost_usd":
        return money(value)
    if resource.name == "latency_ms":
        return f"{value:,.0f} ms" if value < 10_000 else f"{value / 1000:,.1f} s"
    return number(value) if value < 10 else f"{value:,.0f}"
