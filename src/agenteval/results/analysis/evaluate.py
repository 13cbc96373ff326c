"""Evaluates all answers of a run together: criteria, averages, and the analyses that the suite enables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agenteval.core.records import dataclass
from agenteval.core.text import display_path
from agenteval.results.analysis.answers import EvaluatedAnswer
from agenteval.results.analysis.baseline import compare_with, infer, read_baseline
from agenteval.results.analysis.criteria import Check, alert_text, check_alerts, check_criteria, overall, recommend
from agenteval.results.analysis.summary import (
    MEASURES,
    Outliers,
    by_persona,
    find_failures,
    find_outliers,
    summarise,
    trend,
)
from agenteval.results.case import Criterion
from agenteval.suite.evaluation import Aggregate, Evaluation, EvaluationReport

_TOP_REASONS_OF_PERSONA = 3


@dataclass(frozen=True)
class EvaluationResult:
    """The result of all analyses.

    Attributes:
        checks: the criteria, in suite order.
        content: summary.json. Rates and scores are 0..1, times are in milliseconds; disabled analyses are absent.
    """

    evaluation: Evaluation
    checks: tuple[Check, ...]
    content: Mapping[str, Any]

    @property
    def criteria(self) -> list[Criterion]:
        """The criteria for results.json: times in seconds, rates 0..1."""
        return [check.criterion for check in self.checks]

    @property
    def success(self) -> bool | None:
        """Whether all criteria are met, which one without data is not; ``None`` without criteria."""
        return overall(self.checks)

    @property
    def analysis(self) -> Mapping[str, Any]:
        """The part of the summary with the enabled analyses."""
        found: Mapping[str, Any] = self.content.get("analysis", {})
        return found

    @property
    def warnings(self) -> list[str]:
        """Warnings that do not fail the run: alerts, criteria without data, an unusable baseline."""
        alerts = self.analysis.get("alerts", ())
        found = [f"alert: {alert_text(alert)}" for alert in alerts if alert["triggered"] or alert["value"] is None]
        unknown = [check.name for check in self.checks if check.met is None]
        found += [f"criterion {name} could not be checked: data is missing" for name in unknown]
        message = self.analysis.get("comparison", {}).get("message")
        return [*found, message] if message else found


@dataclass(frozen=True)
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


def evaluate(answers: Sequence[EvaluatedAnswer], evaluation: Evaluation, aggregate: Aggregate) -> EvaluationResult:
    """Run all analyses that the suite enables. The order of the answers does not matter.

    Reads the baseline summary that the suite names. A missing or broken baseline becomes a message in the result.
    """
    analyses = evaluation.analyses
    outliers = [find_outliers(answers, measure) for measure in MEASURES] if analyses.outliers else []
    are_removed = outliers and analyses.outlier_handling == "remove"
    timed, scored = (found.usual for found in outliers) if are_removed else (answers, answers)
    content = summarise(answers, scored, timed, aggregate)
    personas = by_persona(answers, scored, timed, aggregate) if analyses.personas else {}
    content["persona_breakdown"] = {name: _persona(stats) for name, stats in personas.items()}
    checks = check_criteria(content, evaluation.criteria)
    if evaluation.goal:
        content["evaluation_goal"] = evaluation.goal
    if checks:
        content |= {"success_criteria_results": _checks(checks), "overall_success": overall(checks)}
    performance: dict[str, Any] = _outliers(outliers, evaluation) if outliers else {}
    if analyses.trend:
        trends = {"final_score": trend(scored, "final_score"), "duration_ms": trend(timed, "duration_ms")}
        performance["trends"] = {name: found for name, found in trends.items() if found}
    analysis: dict[str, Any] = {"persona": _focus(personas, analyses.focus_personas), "performance": performance}
    if analyses.failures:
        failures = find_failures(answers, aggregate, causes=analyses.failure_causes)
        analysis["failures"] = {"top_reasons": content["top_reasons"], **failures}
    baseline = read_baseline(Path(analyses.baseline)) if analyses.baseline else None
    if baseline is not None:
        analysis["comparison"] = compare_with(baseline, content)
    if analyses.statistics:
        analysis["statistics"] = infer(content, personas, baseline, analyses.confidence, analyses.significance)
    analysis["alerts"] = check_alerts(analyses.alerts, content)
    analysis["recommendations"] = recommend({**content, "analysis": analysis}, checks)
    if found := {name: part for name, part in analysis.items() if part}:
        content["analysis"] = found
    if evaluation.report:
        content["report"] = _report(evaluation.report)
    return EvaluationResult(evaluation, checks, content)


def _persona(stats: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "count": stats["total_traces"],
        "average_score": stats["average_score"],
        "pass_rate": stats["pass_rate"],
        "average_duration_ms": stats["duration_stats"]["average"],
        "failed_traces": stats["judged_traces"] - stats["passed_traces"],
    }


def _checks(checks: Sequence[Check]) -> dict[str, Any]:
    sections: dict[str, Any] = {"performance": {}, "quality": {}, "functionality": {}}
    for check in checks:
        sections[check.section][check.key] = {"met": check.met, **check.details}
    return {**sections, "overall_success": overall(checks)}


def _focus(personas: Mapping[str, Mapping[str, Any]], focus: Sequence[str]) -> dict[str, Any]:
    if not personas:
        return {}
    breakdown = {
        name: {
            **_persona(personas[name]),
            "evaluator_averages": {
                metric: stats["average"]
                for metric, stats in sorted(personas[name]["evaluator_stats"].items())
                if stats["count"]
            },
            "top_reasons": personas[name]["top_reasons"][:_TOP_REASONS_OF_PERSONA],
        }
        for name in (focus or personas)
        if name in personas
    }
    return {"focus_personas": list(focus), "breakdown": breakdown} if focus else {"breakdown": breakdown}


def _outliers(outliers: Sequence[Outliers], evaluation: Evaluation) -> dict[str, Any]:
    named = dict(zip(MEASURES, outliers, strict=True))
    return {
        "outliers": {name: found.listed for name, found in named.items()},
        "outlier_handling": evaluation.analyses.outlier_handling,
        "outlier_effect": {name: found.effect for name, found in named.items()},
    }


def _report(report: EvaluationReport) -> dict[str, Any]:
    formats: Mapping[tuple[bool, bool], str] = {(True, True): "both", (True, False): "md", (False, True): "html"}
    return {
        "format": formats.get((report.markdown, report.html), "none"),
        "style": report.style,
        "tone": report.tone,
        "template": display_path(Path(report.template)) if report.template else "default",
    }
