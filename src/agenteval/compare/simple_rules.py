"""Comparisons by a simple rule. Unlike the statistics, simple rules report noise as a change.

``any-flip``: a case regressed if it passed and now fails. A metric regressed if its mean over the cases that both
runs scored dropped by more than a tolerance. ``mean-drop``: only the means count. ``threshold``: only the share of
passed cases counts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from agenteval.compare.policy import ComparePolicy
from agenteval.results.comparison import ComparedCase, ComparedMetric, RunVerdict
from agenteval.results.model import Results
from agenteval.results.rollup import summarise

# 0.75 - 0.8 is -0.05000000000000004: a drop by exactly the tolerance is allowed.
_ROUNDING = 1e-9


def simple_rule_verdict(
    current: Results, cases: Sequence[ComparedCase], quarantined: Collection[str], policy: ComparePolicy
) -> tuple[RunVerdict, str, list[ComparedMetric]]:
    """Return the verdict of a simple rule, its reason, and the means of all metrics."""
    cases = [case for case in cases if case.id not in quarantined]
    metrics = _metrics(cases, policy)
    if policy.name == "threshold":
        counting = [case for _, case in current.cases() if case.id not in quarantined]
        return *_by_pass_rate(summarise(counting).pass_rate, policy), metrics
    flips = cases if policy.name == "any-flip" else ()
    return *_by_change(cases, flips, metrics, policy.settings.tolerance), metrics


def _metrics(cases: Sequence[ComparedCase], policy: ComparePolicy) -> list[ComparedMetric]:
    pairs: dict[str, list[tuple[float, float]]] = {}
    judging: set[str] = set()
    for case in cases:
        for change in case.metrics:
            if change.before is not None and change.after is not None:
                pairs.setdefault(change.id, []).append((change.before, change.after))
            if change.passed_after is not None:
                judging.add(change.id)
    return [
        _metric(
            name,
            found,
            policy,
            gating=policy.gating.get(name, name in judging) and name not in policy.accepted_means,
        )
        for name, found in pairs.items()
    ]


def _metric(
    name: str, pairs: Sequence[tuple[float, float]], policy: ComparePolicy, *, gating: bool
) -> ComparedMetric:
    tolerance = policy.settings.tolerance
    before = sum(pair[0] for pair in pairs) / len(pairs)
    after = sum(pair[1] for pair in pairs) / len(pairs)
    difference = after - before
    verdict: RunVerdict = "unchanged"
    reason = f"the mean changed by no more than {tolerance:g}"
    if difference < -tolerance - _ROUNDING:
        verdict, reason = "regressed", f"the mean dropped by more than {tolerance:g}"
    elif difference > tolerance + _ROUNDING:
        verdict, reason = "improved", f"the mean rose by more than {tolerance:g}"
    return ComparedMetric(
        id=name,
        n=len(pairs),
        baseline=before,
        current=after,
        difference=difference,
        verdict=verdict,
        reason=reason,
        gating=gating and policy.name != "threshold",
    )


def _by_change(
    cases: Sequence[ComparedCase],
    flips: Sequence[ComparedCase],
    metrics: Sequence[ComparedMetric],
    tolerance: float,
) -> tuple[RunVerdict, str]:
    if not cases:
        return "unchanged", "no case is in both runs with the same question and metrics"
    worse = sum(case.change == "regressed" for case in flips)
    better = sum(case.change == "improved" for case in flips)
    gating = [metric for metric in metrics if metric.gating]
    fallen = [metric.id for metric in gating if metric.verdict == "regressed"]
    if worse or fallen:
        parts = [f"{worse:,} of {len(cases):,} cases passed before and fail now"] if worse else []
        parts += [f"the mean of {name} dropped" for name in fallen]
        return "regressed", "; ".join(parts)
    risen = [metric.id for metric in gating if metric.verdict == "improved"]
    if better or risen:
        parts = [f"{better:,} of {len(cases):,} cases failed before and pass now"] if better else []
        parts += [f"the mean of {name} rose" for name in risen]
        return "improved", "; ".join(parts)
    if flips:
        return "unchanged", f"none of {len(cases):,} cases changed its status"
    return "unchanged", f"no mean changed by more than {tolerance:g}"


def _by_pass_rate(rate: float | None, policy: ComparePolicy) -> tuple[RunVerdict, str]:
    least = policy.min_pass_rate or 0.0
    if rate is None:
        return "unchanged", "no case passed or failed"
    if rate < least - _ROUNDING:
        return "regressed", f"{rate:.1%} of the cases passed, {least:.1%} are needed"
    return "unchanged", f"{rate:.1%} of the cases passed, {least:.1%} are needed"
