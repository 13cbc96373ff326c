"""Compares two runs by statistics, and returns the result in the types of results.json."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from agenteval.compare.case_notes import annotated
from agenteval.compare.concluded import Concluded
from agenteval.compare.policy import ComparePolicy
from agenteval.compare.pool import MOVED_MEANS, REGRESSED_CASES
from agenteval.compare.samples import Confirmation, Sides
from agenteval.compare.statistics.decision import Decision, FirstStage, final_stage, first_stage
from agenteval.compare.statistics.drift import check_drift
from agenteval.compare.statistics.model import MetricRuns
from agenteval.compare.statistics.parameters import GateParameters
from agenteval.compare.statistics.power import Improvement, ways_to_halve
from agenteval.compare.statistics.verdict import MetricDecision, points
from agenteval.core.statistics import holm
from agenteval.results.comparison import ComparedCase, ComparedMetric
from agenteval.results.verdict import Unproven

# Error rate of the drift check over all metrics.
_DRIFT_ALPHA = 0.05


def needed_confirmation(sides: Sides) -> FirstStage:
    """Return the confirmation runs that the first run asks for."""
    return first_stage(sides.metrics, sides.policy.parameters)


def conclude(sides: Sides, cases: Sequence[ComparedCase], first: FirstStage, confirmation: Confirmation) -> Concluded:
    """Decide with the confirmation runs.

    Args:
        sides: the two runs.
        cases: the cases of both runs.
        first: the confirmation runs that the first run asked for.
        confirmation: the confirmation runs that were made.
    """
    policy = sides.policy
    metrics = [confirmation.add_to(metric) for metric in sides.metrics]
    decision = final_stage(first, metrics, policy.parameters)
    fallen = _fallen(decision, policy.parameters)
    given = {metric.metric: metric for metric in metrics}
    names = {case.id: case.name for case in cases}
    missing = _missing(first, decision)
    unproven = list(_unproven(decision, sides.lost_by_agent, missing, confirmation.not_run_because))
    if missing and confirmation.not_run_because:
        missing.append(confirmation.not_run_because)
    return Concluded(
        verdict=decision.verdict,
        unproven=unproven,
        metrics=[_compared(item, given[item.metric], policy, names) for item in decision.metrics if _has(item)],
        cases=annotated(sides, cases, decision, metrics, by_mean=bool(fallen)),
        details={
            **_described(sides, first, missing),
            "reason": "; ".join([_with_names(decision.reason, names), *missing]),
            REGRESSED_CASES: list(decision.regressed_cases),
            MOVED_MEANS: [*fallen, *_risen(decision)],
        },
        notes=[*sides.earlier.notes, *_drift_notes(metrics, policy.parameters), *missing],
    )


def _unproven(
    decision: Decision, lost_by_agent: Collection[str], missing: Collection[str], not_run_because: str
) -> Iterator[Unproven]:
    """Yield the metrics that lost too many scores, and the confirmation runs that were not made."""
    for item in decision.metrics:
        if item.lost:
            text = f"{item.metric}: {item.evidence.problem}"
            yield Unproven(
                what="errors", text=text, mended_by="change" if item.metric in lost_by_agent else "outside"
            )
    if missing:
        why = f" ({not_run_because})" if not_run_because else ""
        text = f"a suspected regression was not confirmed: {'; '.join(missing)}{why}"
        yield Unproven(what="confirmation", text=text, mended_by="outside")


def _drift_notes(metrics: Iterable[MetricRuns], parameters: GateParameters) -> list[str]:
    """Return a note for each metric whose baseline runs drift, corrected for the number of metrics."""
    checks = [(metric.metric, check_drift(metric, parameters)) for metric in metrics if metric.gating]
    rejected = holm([1.0 if check.p is None else check.p for _, check in checks], _DRIFT_ALPHA, len(checks))
    return [f"{name}: {check.text}" for (name, check), drifts in zip(checks, rejected, strict=True) if drifts]


def _fallen(decision: Decision, parameters: GateParameters) -> list[str]:
    """Return the gating metrics whose means dropped; other metrics may have regressed by single cases only."""
    gating = [item for item in decision.metrics if item.gating]
    alpha = parameters.alpha_single if parameters.confirm == "off" else parameters.alpha_aggregate
    rejected = holm([item.evidence.p for item in gating], alpha, len(gating))
    return [item.metric for item, low in zip(gating, rejected, strict=True) if low and item.evidence.fell(parameters)]


def _risen(decision: Decision) -> list[str]:
    return [item.metric for item in decision.metrics if item.gating and item.verdict == "improved"]


def _has(decision: MetricDecision) -> bool:
    return decision.evidence.estimate is not None


def _compared(
    decision: MetricDecision, runs: MetricRuns, policy: ComparePolicy, names: Mapping[str, str]
) -> ComparedMetric:
    estimate = decision.evidence.estimate
    assert estimate is not None  # noqa: S101 - see _has
    p = estimate.p_low if decision.verdict != "improved" else estimate.p_high
    drop = decision.evidence.detectable_drop
    # No advice is needed if the detectable drop is below the tolerance.
    ways = ways_to_halve(runs, policy.parameters) if drop is not None and drop > policy.parameters.tolerance else ()
    return ComparedMetric(
        id=decision.metric,
        n=estimate.cases,
        baseline=estimate.baseline_mean,
        current=estimate.current_mean,
        difference=estimate.difference,
        verdict=decision.verdict,
        reason=_with_names(decision.reason, names),
        gating=decision.gating,
        interval=estimate.interval,
        p=p,
        units=estimate.units,
        runs=estimate.baseline_runs,
        iterations=estimate.iterations,
        detectable_drop=drop,
        advice=_advice(ways[0]) if ways else None,
    )


def _advice(way: Improvement) -> str:
    cost = f", {way.extra_iterations} more iterations per run" if way.extra_iterations else ""
    return f"{way.wanted} {way.means} instead of {way.now} would detect a drop of {points(way.detectable_drop)}{cost}"


def _with_names(reason: str, names: Mapping[str, str]) -> str:
    """Return the reason with case names instead of case ids."""
    for case_id in sorted((case_id for case_id in names if case_id in reason), key=len, reverse=True):
        reason = reason.replace(case_id, names[case_id])
    return reason


def _described(sides: Sides, first: FirstStage, missing: Collection[str]) -> dict[str, Any]:
    """Return the policy and its confirmation runs, as results.json records them."""
    parameters = sides.policy.parameters
    return {
        "name": sides.policy.name,
        "confirm": parameters.confirm,
        "baseline_runs": len(sides.earlier.scores),
        "second_run": first.second_run,
        "reruns": dict(first.reruns),
        "confirmed": not missing and (first.second_run or bool(first.reruns)),
        "parameters": {key: value for key, value in asdict(parameters).items() if key != "confirm"},
    }


def _missing(first: FirstStage, decision: Decision) -> list[str]:
    """Return the confirmation runs that were asked for and not made."""
    evidence = [item.evidence for item in decision.metrics if item.gating]
    missing = []
    if any(item.suspicious and not item.deciding for item in evidence):
        missing.append("a second run of the suite would confirm or clear the suspected regression")
    # Suspects without planned re-runs are not missing.
    unproven = {
        finding.count.case_id: finding.repeats
        for item in evidence
        for finding in item.suspects
        if finding.repeats and finding.p is None
    }
    if unproven:
        total = sum(first.reruns.get(case_id, repeats) for case_id, repeats in unproven.items())
        missing.append(
            f"{total} further iterations of {_cases(unproven)} would confirm or clear the suspected regressions"
        )
    return missing


def _cases(ids: Collection[str]) -> str:
    return "1 case" if len(ids) == 1 else f"{len(ids)} cases"
