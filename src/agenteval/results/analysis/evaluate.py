"""Evaluates all answers of a run together: criteria, averages, and the analyses that the suite enables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from agenteval.results.analysis.alerts import check_alerts
from agenteval.results.analysis.answers import EvaluatedAnswer
from agenteval.results.analysis.criteria import check_criteria
from agenteval.results.analysis.export import as_json, trace_json
from agenteval.results.analysis.failures import Failures, count_failures, find_causes
from agenteval.results.analysis.inference import Statistics, infer
from agenteval.results.analysis.outliers import averaged, find_outliers
from agenteval.results.analysis.personas import PersonaStats, by_persona
from agenteval.results.analysis.recommendations import Findings, recommend
from agenteval.results.analysis.result import EvaluationResult
from agenteval.results.analysis.summary import Summary, summarise
from agenteval.results.analysis.summary_baseline import BaselineComparison, compare_with, read_baseline
from agenteval.results.analysis.trend import find_trends
from agenteval.suite.evaluation import Aggregate, Analyses, Evaluation

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
        failures=_failures(answers, analyses, aggregate),
        trends=find_trends(averages) if analyses.trend else None,
        outliers=outliers,
        comparison=_comparison(analyses, summary, aggregate),
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
        statistics=_statistics(analyses, summary, findings.personas, findings.comparison),
        alerts=check_alerts(analyses.alerts, summary),
        recommendations=recommend(findings, evaluation.report.tone if evaluation.report else "balanced"),
    )


def _failures(answers: Sequence[EvaluatedAnswer], analyses: Analyses, aggregate: Aggregate) -> Failures | None:
    if not analyses.failures:
        return None
    return find_causes(answers, aggregate) if analyses.failure_causes else count_failures(answers)


def _comparison(analyses: Analyses, summary: Summary, aggregate: Aggregate) -> BaselineComparison | None:
    if analyses.baseline is None:
        return None
    return compare_with(read_baseline(Path(analyses.baseline)), summary, aggregate)


def _statistics(
    analyses: Analyses,
    summary: Summary,
    personas: Mapping[str, PersonaStats],
    comparison: BaselineComparison | None,
) -> Statistics | None:
    if not analyses.statistics:
        return None
    baseline = comparison.baseline if comparison else None
    return infer(summary, personas, baseline, confidence=analyses.confidence, significance=analyses.significance)
