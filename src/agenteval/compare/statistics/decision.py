"""The two stages of the gate: the confirmation runs that the first run needs, and the decision.

A first run alone never fails the gate. It raises a suspicion, about the mean of a metric or about single cases, and
new runs check the suspicion. The deciding test keeps its error rate even if the new runs had always been made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agenteval.compare.statistics.case_confirmation import confirm_cases
from agenteval.compare.statistics.case_flags import annotate
from agenteval.compare.statistics.case_plan import CasePlan, plan_cases
from agenteval.compare.statistics.error_rate import error_problem
from agenteval.compare.statistics.mean_comparison import Aggregate
from agenteval.compare.statistics.means import deciding_comparisons, detectable, first_comparison
from agenteval.compare.statistics.model import CaseRuns, MetricRuns
from agenteval.compare.statistics.parameters import Confirm, GateParameters
from agenteval.compare.statistics.verdict import Evidence, MetricDecision, Verdict, judge_metric, worst
from agenteval.core.statistics import ROUNDING, holm


@dataclass(frozen=True, kw_only=True)
class MetricStage:
    """The findings of the first run about one metric.

    Args:
        metric: id of the metric.
        gating: whether the metric can fail the gate.
        confirm: how suspicions are confirmed; ``off`` for a metric that does not gate.
        aggregate: the comparison of means; ``None`` if no case has scores in both runs.
        suspicious: whether the mean needs a second run.
        plan: candidates among the cases.
    """

    metric: str
    gating: bool
    confirm: Confirm
    aggregate: Aggregate | None
    suspicious: bool
    plan: CasePlan


@dataclass(frozen=True, kw_only=True)
class FirstStage:
    """The confirmation runs that the first run needs.

    Args:
        metrics: in the order of the input.
        second_run: whether the pull request's agent runs the whole suite again.
        reruns: number of re-runs by case id, each in a separate session.
        beside_base: whether the base commit's agent makes the same runs at the same time, interleaved.
    """

    metrics: tuple[MetricStage, ...]
    second_run: bool
    reruns: Mapping[str, int]
    beside_base: bool


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The verdict on a run.

    Args:
        verdict: the worst verdict of the gating metrics.
        reason: the reasons of all metrics with that verdict, as text.
        metrics: in the order of the input.
        regressed_cases: ids of the cases that regressed in a gating metric, sorted.
    """

    verdict: Verdict
    reason: str
    metrics: tuple[MetricDecision, ...]
    regressed_cases: tuple[str, ...]


def first_stage(metrics: Sequence[MetricRuns], parameters: GateParameters) -> FirstStage:
    """Compare the pull request's first run with the pool.

    Args:
        metrics: each with its first run and the pool.
        parameters: parameters of the gate.

    Raises:
        ValueError: two metrics have the same id.
    """
    if len({metric.metric for metric in metrics}) != len(metrics):
        raise ValueError("two metrics have the same id")
    family = sum(metric.gating for metric in metrics)
    stages = tuple(_first(metric.newest(parameters.window), family, parameters) for metric in metrics)
    reruns: dict[str, int] = {}
    for stage in stages:
        for count in stage.plan.reruns:
            reruns[count.case_id] = max(reruns.get(count.case_id, 0), stage.plan.repeats)
    return FirstStage(
        metrics=stages,
        second_run=any(stage.suspicious for stage in stages),
        reruns=dict(sorted(reruns.items())),
        beside_base=parameters.confirm in {"against-base", "both"},
    )


def final_stage(first: FirstStage, metrics: Sequence[MetricRuns], parameters: GateParameters) -> Decision:
    """Decide with the confirmation runs.

    Args:
        first: the first stage of the same scores.
        metrics: the metrics of the first stage, with ``second``, ``control``, ``reruns`` and ``control_reruns`` as it
            asked for them. Missing runs prove no regression: the mean is then unproven, and the case stays a suspect.
        parameters: parameters of the first stage.

    Raises:
        ValueError: the metrics are not those of the first stage.
    """
    given = {metric.metric: metric.newest(parameters.window) for metric in metrics}
    if given.keys() != {stage.metric for stage in first.metrics}:
        raise ValueError("the metrics are not those of the first stage")
    evidence = {stage.metric: _evidence(stage, given[stage.metric], parameters) for stage in first.metrics}
    gating = [stage.metric for stage in first.metrics if stage.gating]
    alpha = parameters.alpha_single if parameters.confirm == "off" else parameters.alpha_aggregate
    rejected = dict(zip(gating, holm([evidence[name].p for name in gating], alpha, len(gating)), strict=True))
    decisions = []
    for stage in first.metrics:
        found = evidence[stage.metric]
        low = rejected.get(stage.metric, found.p <= parameters.alpha_single + ROUNDING)
        alpha_improved = parameters.alpha_single / (len(gating) if stage.gating else 1)
        verdict, reason = judge_metric(found, low and found.fell(parameters), alpha_improved, parameters)
        decisions.append(
            MetricDecision(
                metric=stage.metric,
                gating=stage.gating,
                verdict=verdict,
                reason=reason,
                evidence=found,
                annotations=annotate(given[stage.metric]),
            )
        )
    return _overall(decisions)


def _first(metric: MetricRuns, family: int, parameters: GateParameters) -> MetricStage:
    confirm = parameters.confirm if metric.gating else "off"
    aggregate = first_comparison(metric, parameters)
    p = 1.0 if aggregate is None else aggregate.p_low
    alpha_case = parameters.alpha_case / (family if metric.gating else 1)
    return MetricStage(
        metric=metric.metric,
        gating=metric.gating,
        confirm=confirm,
        aggregate=aggregate,
        suspicious=confirm != "off" and p <= parameters.screen + ROUNDING,
        plan=plan_cases(metric.compared, confirm, alpha_case, parameters),
    )


def _evidence(stage: MetricStage, metric: MetricRuns, parameters: GateParameters) -> Evidence:
    cases: dict[str, CaseRuns] = {case.case_id: case for case in metric.cases}
    found = confirm_cases(stage.plan, cases, stage.confirm, parameters)
    deciding = deciding_comparisons(metric, stage.confirm, parameters)
    if stage.confirm == "off" and stage.aggregate is not None:
        deciding = (stage.aggregate,)
    return Evidence(
        first=stage.aggregate,
        deciding=deciding,
        suspicious=stage.suspicious,
        detectable_drop=detectable(metric, stage.confirm, parameters),
        regressed=found.regressed,
        suspects=found.suspects,
        problem=None if metric.errors is None else error_problem(metric.errors, parameters),
    )


def _overall(decisions: Sequence[MetricDecision]) -> Decision:
    gating = [decision for decision in decisions if decision.gating]
    verdict = worst([decision.verdict for decision in gating])
    reasons = [f"{decision.metric}: {decision.reason}" for decision in gating if decision.verdict == verdict]
    regressed = {finding.count.case_id for decision in gating for finding in decision.evidence.regressed}
    return Decision(
        verdict=verdict,
        reason="; ".join(reasons) or "no metric was compared",
        metrics=tuple(decisions),
        regressed_cases=tuple(sorted(regressed)),
    )
