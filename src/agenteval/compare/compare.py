"""Compares a run with its baseline by a simple, explainable rule.

A case regressed if it passed and now fails. A metric regressed if its mean over the cases that both
runs scored fell by more than a tolerance.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from agenteval.compare.pair import pair_cases
from agenteval.results.model import (
    BaselineInfo,
    ComparedCase,
    ComparedMetric,
    Comparison,
    Results,
    RunVerdict,
)

DEFAULT_TOLERANCE = 0.05
# 0.75 - 0.8 is -0.05000000000000004: a fall by exactly the tolerance is allowed.
_ROUNDING = 1e-9


def compare(
    current: Results, baseline: Results, known: Collection[str], tolerance: float = DEFAULT_TOLERANCE
) -> Comparison:
    """Compare two runs.

    Args:
        current: the run in question.
        baseline: the run it is measured against.
        known: ids of all cases in the suites of the current run, filtered-out ones included.
        tolerance: how far a metric's mean may fall, 0..1.
    """
    pairing = pair_cases(current, baseline, known)
    metrics = _metrics(pairing.compared, tolerance)
    verdict, reason = _verdict(pairing.compared, metrics)
    return Comparison(
        baseline=BaselineInfo(
            commit=baseline.run.commit,
            ref=baseline.run.ref,
            run_id=baseline.run.id,
            created_at=baseline.run.started_at,
        ),
        verdict=verdict,
        metrics=metrics,
        cases=list(pairing.cases),
        policy={"name": "any-flip", "tolerance": tolerance, "reason": reason},
    )


def _metrics(cases: Sequence[ComparedCase], tolerance: float) -> list[ComparedMetric]:
    pairs: dict[str, list[tuple[float, float]]] = {}
    for case in cases:
        for change in case.metrics:
            if change.before is not None and change.after is not None:
                pairs.setdefault(change.id, []).append((change.before, change.after))
    return [_metric(name, found, tolerance) for name, found in pairs.items()]


def _metric(name: str, pairs: Sequence[tuple[float, float]], tolerance: float) -> ComparedMetric:
    before = sum(pair[0] for pair in pairs) / len(pairs)
    after = sum(pair[1] for pair in pairs) / len(pairs)
    difference = after - before
    verdict: RunVerdict = "unchanged"
    reason = f"the mean moved by no more than {tolerance:g}"
    if difference < -tolerance - _ROUNDING:
        verdict, reason = "regressed", f"the mean fell by more than {tolerance:g}"
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
    )


def _verdict(cases: Sequence[ComparedCase], metrics: Sequence[ComparedMetric]) -> tuple[RunVerdict, str]:
    if not cases:
        return "inconclusive", "no case is in both runs with the same question and metrics"
    worse = sum(case.change == "regressed" for case in cases)
    better = sum(case.change == "improved" for case in cases)
    fallen = [metric.id for metric in metrics if metric.verdict == "regressed"]
    if worse or fallen:
        parts = [f"{worse} of {len(cases)} cases passed before and fail now"] if worse else []
        parts += [f"the mean of {name} fell" for name in fallen]
        return "regressed", "; ".join(parts)
    if better or any(metric.verdict == "improved" for metric in metrics):
        return "improved", f"{better} of {len(cases)} cases failed before and pass now"
    return "unchanged", f"none of {len(cases)} cases changed its status"
