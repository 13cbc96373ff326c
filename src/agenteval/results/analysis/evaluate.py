"""Evaluates all answers of a run together: criteria, averages, analyses, and differences from a summary.json."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agenteval.core.files import read_regular
from agenteval.core.records import dataclass
from agenteval.core.statistics import holm
from agenteval.core.text import display_path
from agenteval.results.analysis.answers import EvaluatedAnswer
from agenteval.results.analysis.criteria import Check, alert_text, check_alerts, check_criteria, overall, recommend
from agenteval.results.analysis.summary import (
    MEASURES,
    Moments,
    Outliers,
    by_persona,
    find_failures,
    find_outliers,
    share_p,
    summarise,
    t_interval,
    trend,
    welch_p,
    wilson,
)
from agenteval.results.case import Criterion
from agenteval.results.importers.base import finite
from agenteval.suite.evaluation import Aggregate, Evaluation, EvaluationReport

_LARGEST_FILE = 100 * 1024 * 1024
_TOTALS = ("pass_rate", "average_score", "total_traces", "passed_traces")


def read_baseline(path: Path) -> dict[str, Any] | str:
    """Return the figures of a summary.json, unknown ones as ``None``; or why the file cannot be used."""
    shown = display_path(path)
    try:
        content = json.loads(read_regular(path, limit=_LARGEST_FILE).decode("utf-8-sig"))
    except FileNotFoundError:
        return f"there is no baseline at {shown}"
    except OSError as error:
        return f"the baseline {shown} cannot be read: {error.strerror}"
    except (ValueError, RecursionError):
        return f"the baseline {shown} is not valid JSON"
    baseline = _baseline(content, shown) if isinstance(content, dict) else None
    if baseline is None:
        return (
            f"the baseline {shown} is not a summary: it has neither pass_rate nor average_score nor evaluator_stats"
        )
    return baseline


def _baseline(content: Mapping[str, Any], shown: str) -> dict[str, Any] | None:
    named = content.get("evaluator_stats")
    metrics = {name: _stats(stats) for name, stats in (named if isinstance(named, dict) else {}).items()}
    metrics = {name: stats for name, stats in metrics.items() if stats["average"] is not None}
    rates = {name: finite(content.get(name)) for name in ("pass_rate", "average_score", "threshold")}
    if rates["pass_rate"] is None and rates["average_score"] is None and not metrics:
        return None
    counts = {name: _count(content.get(name)) for name in ("total_traces", "passed_traces", "judged_traces")}
    if counts["judged_traces"] is None:
        counts["judged_traces"] = counts["total_traces"]
    scores = _stats(content.get("score_stats"))
    return {**rates, **counts, "score_stats": scores, "evaluator_stats": metrics, "baseline_path": shown}


def _stats(stats: object) -> dict[str, Any]:
    found = stats if isinstance(stats, dict) else {}
    average, deviation = (finite(found.get(name)) for name in ("average", "deviation"))
    return {"average": average, "deviation": deviation, "count": _count(found.get("count"))}


def _count(value: object) -> int | None:
    number = finite(value)
    return int(number) if number is not None and number >= 0 and number == int(number) else None


def compare_with(baseline: Mapping[str, Any] | str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return what changed, for summary.json; without a usable baseline only the message."""
    if isinstance(baseline, str):
        return {"message": baseline}
    before, now = baseline["threshold"], content["threshold"]
    found: dict[str, Any] = {}
    if before is not None and not math.isclose(before, now):
        found["message"] = (
            f"the threshold was {before:g} in the baseline and is {now:g} now: pass rates differ by that"
        )
    found |= _deltas({name: (content[name], baseline[name]) for name in _TOTALS})
    earlier = baseline["evaluator_stats"]
    metrics = {
        name: (stats["average"], earlier[name]["average"])
        for name, stats in content["evaluator_stats"].items()
        if name in earlier
    }
    if averages := _deltas(metrics):
        found["evaluator_averages"] = averages
    return {**found, "baseline_path": baseline["baseline_path"]}


def _deltas(pairs: Mapping[str, tuple[float | None, float | None]]) -> dict[str, dict[str, float]]:
    return {
        name: {"current": current, "baseline": before, "delta": current - before}
        for name, (current, before) in pairs.items()
        if current is not None and before is not None
    }


def infer(
    content: Mapping[str, Any],
    personas: Mapping[str, Mapping[str, Any]],
    baseline: Mapping[str, Any] | str | None,
    confidence: float,
    significance: float,
) -> dict[str, Any]:
    """Return intervals at ``confidence`` and tests at ``significance``, for summary.json.

    Answers count as independent of each other. Each persona is tested against all others, and the run against the
    baseline. Holm's method corrects for all tests of the run.
    """
    tests = list(_between_personas(personas))
    if baseline and not isinstance(baseline, str):
        tests += _against_baseline(content, baseline)
    rejected = holm([test["p"] for test in tests], significance, len(tests))
    return {
        "confidence": confidence,
        "significance": significance,
        "intervals": {
            "pass_rate": wilson(content["passed_traces"], content["judged_traces"], confidence),
            "average_score": t_interval(Moments.of_stats(content["score_stats"]), confidence),
            "evaluators": {
                name: t_interval(Moments.of_stats(stats), confidence)
                for name, stats in content["evaluator_stats"].items()
            },
        },
        "tests": [{**test, "significant": stands} for test, stands in zip(tests, rejected, strict=True)],
    }


class _Group(NamedTuple):
    passed: int = 0
    judged: int = 0
    scores: Moments = Moments()

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> _Group:
        passed, judged = content["passed_traces"], content["judged_traces"]
        if passed is None or judged is None or passed > judged:
            passed = judged = 0
        return cls(passed, judged, Moments.of_stats(content["score_stats"]))

    def joined(self, other: _Group) -> _Group:
        return _Group(self.passed + other.passed, self.judged + other.judged, self.scores + other.scores)


def _between_personas(personas: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    names, groups = list(personas), [_Group.of(content) for content in personas.values()]
    if len(groups) < 2:
        return
    # Sums from both ends give the sum of all others without a subtraction, which would lose digits.
    before = list(itertools.accumulate(groups[:-1], _Group.joined, initial=_Group()))
    after = list(itertools.accumulate(reversed(groups[1:]), _Group.joined, initial=_Group()))[::-1]
    # A against B is the same test as B against A; a second test would only reduce the power.
    against, tested = ("the other personas", len(names)) if len(names) > 2 else (names[1], 1)
    for place in range(tested):
        yield from _tests(names[place], groups[place], against, before[place].joined(after[place]))


def _against_baseline(content: Mapping[str, Any], baseline: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield from _tests("this run", _Group.of(content), "the baseline", _Group.of(baseline))
    for name, stats in content["evaluator_stats"].items():
        if earlier := baseline["evaluator_stats"].get(name):
            now, before = Moments.of_stats(stats), Moments.of_stats(earlier)
            yield from _test_means("this run", now, "the baseline", before, name)


def _tests(subject: str, group: _Group, against: str, others: _Group) -> Iterator[dict[str, Any]]:
    if group.judged and others.judged:
        difference = group.passed / group.judged - others.passed / others.judged
        p = share_p(group.passed, group.judged, others.passed, others.judged)
        yield _test(subject, against, "pass_rate", difference, p)
    yield from _test_means(subject, group.scores, against, others.scores, "final_score")


def _test_means(
    subject: str, values: Moments, against: str, others: Moments, measure: str
) -> Iterator[dict[str, Any]]:
    p = welch_p(values, others)
    if p is not None:
        yield _test(subject, against, measure, values.mean - others.mean, p)


def _test(subject: str, against: str, measure: str, difference: float, p: float) -> dict[str, Any]:
    return {"subject": subject, "against": against, "measure": measure, "difference": difference, "p": p}


_TOP_REASONS_OF_PERSONA = 3


@dataclass(frozen=True)
class EvaluationResult:
    """The criteria, and the content of summary.json, in which disabled analyses are absent."""

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
        """The enabled analyses of the summary."""
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
    """The analysis of one suite; without settings of a report it has only the usual ones."""

    path: str
    name: str
    answers: Sequence[EvaluatedAnswer]
    result: EvaluationResult
    report: EvaluationReport | None


def evaluate(answers: Sequence[EvaluatedAnswer], evaluation: Evaluation, aggregate: Aggregate) -> EvaluationResult:
    """Run all analyses that the suite enables. The order of the answers does not matter."""
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
