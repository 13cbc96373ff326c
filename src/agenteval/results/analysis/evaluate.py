"""Evaluates all answers of a run together: criteria, averages, and the analyses that the suite enables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenteval.core.text import display_path
from agenteval.results.analysis.answers import (
    EvaluatedAnswer,
    Moments,
    OutlierReport,
    Outliers,
    averaged,
    find_outliers,
)
from agenteval.results.analysis.baseline import (
    BaselineComparison,
    Delta,
    Statistics,
    compare_with,
    infer,
    read_baseline,
)
from agenteval.results.analysis.criteria import (
    Alert,
    Check,
    Trend,
    Trends,
    check_alerts,
    check_criteria,
    find_trends,
    overall,
)
from agenteval.results.analysis.recommendations import Findings, Recommendation, recommend
from agenteval.results.analysis.summary import (
    AnalysisSummary,
    Counted,
    MetricStats,
    PersonaStats,
    SortedFailures,
    Times,
    by_persona,
    count_failures,
    find_causes,
    summarise,
)
from agenteval.results.case import Criterion
from agenteval.suite.evaluation import Aggregate, Analyses, Evaluation, EvaluationReport


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """The result of all analyses. Disabled analyses are ``None`` or empty.

    Attributes:
        aggregate: how final scores were computed.
        checks: the criteria, in suite order.
    """

    evaluation: Evaluation
    aggregate: Aggregate
    summary: AnalysisSummary
    personas: Mapping[str, PersonaStats]
    checks: tuple[Check, ...]
    outliers: Outliers | None
    trends: Trends | None
    failures: SortedFailures | None
    comparison: BaselineComparison | None
    statistics: Statistics | None
    alerts: tuple[Alert, ...]
    recommendations: tuple[Recommendation, ...]

    @property
    def criteria(self) -> list[Criterion]:
        """The criteria for results.json: times in seconds, rates 0..1."""
        return [check.criterion for check in self.checks]

    @property
    def success(self) -> bool | None:
        """Whether all criteria are met, which one without data is not; ``None`` without criteria."""
        return overall(self.checks)

    @property
    def warnings(self) -> list[str]:
        """Warnings that do not fail the run: alerts, criteria without data, an unusable baseline."""
        found = [f"alert: {alert}" for alert in self.alerts if alert.triggered or alert.value is None]
        unknown = [check.name for check in self.checks if check.met is None]
        found += [f"criterion {name} could not be checked: data is missing" for name in unknown]
        if self.comparison and self.comparison.message:
            found.append(self.comparison.message)
        return found


@dataclass(frozen=True, slots=True)
class AnalysedSuite:
    """The analysis of one suite.

    Attributes:
        report: settings of its report; ``None`` for only the usual reports.
    """

    path: str
    name: str
    answers: Sequence[EvaluatedAnswer]
    result: EvaluationResult
    report: EvaluationReport | None


#: Number of listed outliers; their total count is recorded beside them.
_MOST_OUTLIERS = 1_000


def as_json(result: EvaluationResult) -> dict[str, Any]:
    """Return the content of summary.json. Rates and scores are 0..1, times are in milliseconds."""
    totals = result.summary.totals
    content: dict[str, Any] = {
        "total_traces": totals.answers,
        "judged_traces": totals.judged,
        "passed_traces": totals.passed,
        "successful_traces": totals.successful,
        "pass_rate": totals.pass_rate,
        "average_score": totals.scores.average,
        "score_stats": _spread(totals.scores),
        "threshold": result.aggregate.threshold,
        "aggregate_method": result.aggregate.method,
        "evaluators": list(result.summary.metrics),
        "evaluator_stats": {name: _metric(stats) for name, stats in result.summary.metrics.items()},
        "duration_stats": _times(result.summary.times),
        "persona_breakdown": {name: _persona(stats) for name, stats in result.personas.items()},
        "top_reasons": _pairs(result.summary.top_reasons),
        "absent_reasons": _pairs(result.summary.absent_reasons),
    }
    if result.evaluation.goal:
        content["evaluation_goal"] = result.evaluation.goal
    if result.checks:
        content["success_criteria_results"] = _checks(result.checks)
        content["overall_success"] = result.success
    if analysis := _analysis(result):
        content["analysis"] = analysis
    if result.evaluation.report:
        content["report"] = _report(result.evaluation.report)
    return content


def _pairs(counted: Counted) -> list[list[Any]]:
    return [[reason, count] for reason, count in counted]


def _spread(moments: Moments) -> dict[str, Any]:
    return {"average": moments.average, "deviation": moments.deviation, "count": moments.count}


def _metric(stats: MetricStats) -> dict[str, Any]:
    return {
        "average": stats.scores.average,
        "min": stats.minimum,
        "max": stats.maximum,
        "count": stats.scores.count,
        "deviation": stats.scores.deviation,
        "absent": stats.absent,
    }


def _times(times: Times) -> dict[str, Any]:
    return {
        **_spread(times.averaged),
        "p50": times.quantile(0.5),
        "p90": times.quantile(0.9),
        "p95": times.quantile(0.95),
        "p99": times.quantile(0.99),
        "max": times.maximum,
    }


def _persona(stats: PersonaStats) -> dict[str, Any]:
    return {
        "count": stats.count,
        "average_score": stats.scores.average,
        "pass_rate": stats.pass_rate,
        "average_duration_ms": stats.durations.average,
        "failed_traces": stats.judged - stats.passed,
    }


def _checks(checks: tuple[Check, ...]) -> dict[str, Any]:
    sections: dict[str, Any] = {"performance": {}, "quality": {}, "functionality": {}}
    for check in checks:
        sections[check.section][check.key] = {"met": check.met, **check.details}
    return {**sections, "overall_success": overall(checks)}


def _analysis(result: EvaluationResult) -> dict[str, Any]:
    parts = {
        "persona": _focus(result),
        "performance": _performance(result),
        "failures": _failures_json(result.failures, result.summary.top_reasons) if result.failures else None,
        "comparison": _comparison_json(result.comparison) if result.comparison else None,
        "statistics": _statistics_json(result.statistics) if result.statistics else None,
        "alerts": [_alert(alert) for alert in result.alerts],
        "recommendations": [_recommendation(item) for item in result.recommendations],
    }
    return {name: part for name, part in parts.items() if part}


def _focus(result: EvaluationResult) -> dict[str, Any]:
    if not result.personas:
        return {}
    focus = result.evaluation.analyses.focus_personas
    chosen = [name for name in focus if name in result.personas] if focus else list(result.personas)
    breakdown = {
        name: {
            **_persona(result.personas[name]),
            "evaluator_averages": dict(result.personas[name].metrics),
            "top_reasons": _pairs(result.personas[name].top_reasons),
        }
        for name in chosen
    }
    return {"focus_personas": list(focus), "breakdown": breakdown} if focus else {"breakdown": breakdown}


def _performance(result: EvaluationResult) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if result.outliers:
        durations, scores = result.outliers.durations, result.outliers.scores
        content["outliers"] = {"duration_ms": _outliers(durations), "final_score": _outliers(scores)}
        content["outlier_handling"] = result.evaluation.analyses.outlier_handling
        content["outlier_effect"] = {"duration_ms": _effect(durations), "final_score": _effect(scores)}
    if result.trends:
        trends = {"final_score": result.trends.scores, "duration_ms": result.trends.durations}
        content["trends"] = {name: _trend(trend) for name, trend in trends.items() if trend}
    return content


def _outliers(unusual: OutlierReport) -> list[dict[str, Any]]:
    if unusual.fences is None:
        return []
    thresholds = {"lower": unusual.fences.lower, "upper": unusual.fences.upper}
    return [
        {"trace_id": item.answer.trace_id or item.answer.name, "value": item.value, "thresholds": thresholds}
        for item in unusual.outliers[:_MOST_OUTLIERS]
    ]


def _effect(unusual: OutlierReport) -> dict[str, Any]:
    return {
        "count": len(unusual.outliers),
        "average_with": unusual.everything.average,
        "average_without": unusual.usual.average,
    }


def _trend(trend: Trend) -> dict[str, Any]:
    return {"trend": trend.direction, "slope": trend.slope, "points": [list(point) for point in trend.points]}


def _failures_json(failures: SortedFailures, top_reasons: Counted) -> dict[str, Any]:
    content: dict[str, Any] = {"count": failures.count, "top_reasons": _pairs(top_reasons)}
    if failures.causes is not None:
        content["categorized"] = {name: cause.count for name, cause in failures.causes.items()}
        content["examples"] = {name: list(cause.examples) for name, cause in failures.causes.items()}
    return content


def _comparison_json(comparison: BaselineComparison) -> dict[str, Any]:
    content: dict[str, Any] = {"message": comparison.message} if comparison.message else {}
    content |= {name: _delta(delta) for name, delta in comparison.totals.items()}
    if comparison.metrics:
        content["evaluator_averages"] = {name: _delta(delta) for name, delta in comparison.metrics.items()}
    if comparison.baseline:
        content["baseline_path"] = comparison.baseline.path
    return content


def _delta(delta: Delta) -> dict[str, float]:
    return {"current": delta.current, "baseline": delta.baseline, "delta": delta.change}


def _statistics_json(statistics: Statistics) -> dict[str, Any]:
    return {
        "confidence": statistics.confidence,
        "significance": statistics.significance,
        "intervals": {
            "pass_rate": statistics.pass_rate,
            "average_score": statistics.score,
            "evaluators": dict(statistics.metrics),
        },
        "tests": [
            {
                "subject": test.subject,
                "against": test.against,
                "measure": test.measure,
                "difference": test.difference,
                "p": test.p,
                "significant": test.significant,
            }
            for test in statistics.tests
        ],
    }


def _alert(alert: Alert) -> dict[str, Any]:
    rule = alert.rule
    return {
        "metric": rule.metric,
        "operator": rule.operator,
        "threshold": rule.threshold,
        "value": alert.value,
        "triggered": alert.triggered,
    }


def _recommendation(item: Recommendation) -> dict[str, Any]:
    return {
        "title": item.title,
        "priority": item.priority,
        "summary": item.summary,
        "action": item.action,
        "metrics": dict(item.metrics),
    }


def _report(report: EvaluationReport) -> dict[str, Any]:
    formats: Mapping[tuple[bool, bool], str] = {(True, True): "both", (True, False): "md", (False, True): "html"}
    return {
        "format": formats.get((report.markdown, report.html), "none"),
        "style": report.style,
        "tone": report.tone,
        "template": display_path(Path(report.template)) if report.template else "default",
    }


def trace_json(answer: EvaluatedAnswer) -> dict[str, Any]:
    """Return one line of per_trace.jsonl."""
    content: dict[str, Any] = {
        "trace_id": answer.trace_id or answer.case_id,
        "iteration": answer.order,
        "persona": answer.persona,
        "success": answer.success,
        "duration_ms": answer.duration_ms,
        "scores": dict(answer.scores),
        "final_score": answer.final_score,
        "pass": answer.passed,
        "reasons": dict(answer.reasons),
        "meta": {"case_id": answer.case_id, "name": answer.name},
    }
    if answer.absent:
        content["absent"] = dict(answer.absent)
    if answer.tokens is not None:
        content["total_tokens"] = answer.tokens
    return content


__all__ = ["EvaluationResult", "as_json", "evaluate", "trace_json"]


def evaluate(answers: Sequence[EvaluatedAnswer], evaluation: Evaluation, aggregate: Aggregate) -> EvaluationResult:
    """Run all analyses that the suite enables. The order of the answers does not matter.

    Reads the baseline summary that the suite names. A missing or broken baseline becomes a message in the result.
    """
    analyses = evaluation.analyses
    outliers = find_outliers(answers) if analyses.outliers else None
    averages = averaged(answers, outliers, analyses)
    summary = summarise(answers, averages, aggregate)
    findings = Findings(
        summary=summary,
        aggregate=aggregate,
        personas=by_persona(answers, averages, aggregate) if analyses.personas else {},
        checks=check_criteria(summary, evaluation.criteria, aggregate),
        failures=_sorted_failures(answers, analyses, aggregate),
        trends=find_trends(averages) if analyses.trend else None,
        outliers=outliers,
        comparison=_compared(analyses, summary, aggregate),
    )
    return EvaluationResult(
        evaluation=evaluation,
        aggregate=aggregate,
        summary=summary,
        personas=findings.personas,
        checks=findings.checks,
        outliers=outliers,
        trends=findings.trends,
        failures=findings.failures,
        comparison=findings.comparison,
        statistics=_inferred(analyses, summary, findings.personas, findings.comparison),
        alerts=check_alerts(analyses.alerts, summary),
        recommendations=recommend(findings, evaluation.report.tone if evaluation.report else "balanced"),
    )


def _sorted_failures(
    answers: Sequence[EvaluatedAnswer], analyses: Analyses, aggregate: Aggregate
) -> SortedFailures | None:
    if not analyses.failures:
        return None
    return find_causes(answers, aggregate) if analyses.failure_causes else count_failures(answers)


def _compared(analyses: Analyses, summary: AnalysisSummary, aggregate: Aggregate) -> BaselineComparison | None:
    if analyses.baseline is None:
        return None
    return compare_with(read_baseline(Path(analyses.baseline)), summary, aggregate)


def _inferred(
    analyses: Analyses,
    summary: AnalysisSummary,
    personas: Mapping[str, PersonaStats],
    comparison: BaselineComparison | None,
) -> Statistics | None:
    if not analyses.statistics:
        return None
    baseline = comparison.baseline if comparison else None
    return infer(summary, personas, baseline, confidence=analyses.confidence, significance=analyses.significance)
