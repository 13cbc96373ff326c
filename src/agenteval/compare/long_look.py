"""What a long look compares, and what it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from agenteval.compare.epoch import runs_since
from agenteval.compare.phrases import count, p_text, points
from agenteval.compare.regression.model import Cost, Decision, Evidence, MetricFinding
from agenteval.compare.sides import restricted
from agenteval.compare.statistical import with_cost
from agenteval.results.comparison import Comparison
from agenteval.results.epoch import Epoch, LongLook, LookedMetric

_COMMIT = 7
# Smallest drop that is shown with one decimal.
_SHOWN = 0.0005


def shared_evidence(evidence: Evidence, epoch: Epoch, shared: Mapping[str, frozenset[str] | None]) -> Evidence:
    """Return the evidence of a long look: what both commits ask in the same way, without cases that changed since.

    Args:
        shared: case id → the metrics that the early commit has too; ``None`` for all. Cases that it lacks are
            missing.
    """
    asked: dict[str, frozenset[str]] = {}
    for case_id, metrics in evidence.first.items():
        if case_id in shared and case_id not in epoch.changed:
            kept = shared[case_id]
            names = frozenset(metrics) if kept is None else kept & metrics.keys()
            if names:
                asked[case_id] = names
    return replace(
        evidence,
        first=restricted(evidence.first, asked),
        pool=tuple(restricted(run, asked) for run in evidence.pool),
        iterations={case_id: number for case_id, number in evidence.iterations.items() if case_id in asked},
    )


def long_look_of(decision: Decision, epoch: Epoch, commit: str) -> LongLook:
    """Return a long look as results.json records it.

    Args:
        epoch: the epoch of the base branch, with the newest run.
    """
    runs = runs_since(epoch, commit)
    merges = len(dict.fromkeys(run.commit for run in runs)) - 1
    metrics = [_looked(finding) for finding in decision.metrics]
    fallen = [metric for metric in metrics if metric.proven]
    since = f"since {commit[:_COMMIT]} ({count(merges, 'merge')})"
    if decision.verdict == "regressed" and fallen:
        what = "; ".join(f"{since} {_fell(metric)}" for metric in fallen)
        reason = f"{what}; no single pull request was proven to do it"
        return LongLook(commit=commit, merges=merges, verdict="regressed", reason=reason, metrics=metrics, runs=runs)
    if decision.verdict == "unchanged":
        reason = f"{since} no mean is proven to have fallen"
        return LongLook(commit=commit, merges=merges, verdict="unchanged", reason=reason, metrics=metrics)
    why = decision.missing.why if decision.missing is not None else "too many iterations were lost"
    return LongLook(commit=commit, merges=merges, verdict="unproven", reason=why, metrics=metrics)


def with_long_look(comparison: Comparison, look: LongLook, cost: Cost) -> Comparison:
    """Return a comparison with its long look: a proven decline is a regression, unless an issue reports it."""
    changes: dict[str, object] = {"long_look": look}
    policy = dict(comparison.policy)
    if look.verdict == "regressed" and not look.is_issue:
        policy |= {"headline": look.reason, "findings": [look.reason], "reason": f"Regressed: {look.reason}"}
        changes |= {"verdict": "regressed", "stage": "long-look"}
    elif look.verdict == "regressed":
        policy["notes"] = [*comparison.notes, f"the base branch declines slowly: {look.reason}"]
    elif look.verdict == "unproven":
        text = f"the base branch could not be compared with an early commit, which is due: {look.reason}"
        policy["notes"] = [*comparison.notes, text]
    return with_cost(comparison, cost).model_copy(update={**changes, "policy": policy})


def _looked(finding: MetricFinding) -> LookedMetric:
    return LookedMetric(
        id=finding.metric,
        current=finding.current,
        then=finding.control,
        interval=finding.interval,
        p=finding.p,
        limit=finding.limit,
        runs_a_side=finding.runs,
        proven=finding.proven,
    )


def _fell(metric: LookedMetric) -> str:
    """Return the proven drop of a metric, with its numbers."""
    least = abs(metric.interval[1]) if metric.interval is not None else 0.0
    # A proof can be so narrow that no tenth of a point is certain.
    by = f" by at least {points(least)}" if least >= _SHOWN else ""
    runs = count(metric.runs_a_side, "run")
    numbers = [f"side by side {points(metric.current - metric.then)} less", f"{runs} a side"]
    if metric.p is not None and metric.limit is not None:
        numbers.append(p_text(metric.p, metric.limit))
    return f"{metric.id} fell{by} ({', '.join(numbers)})"
