"""Derives recommendations from the findings of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agenteval.results.analysis.advice import ADVICE, TITLES, Kind
from agenteval.results.analysis.aggregate import passes
from agenteval.results.analysis.criteria import Check
from agenteval.results.analysis.failures import Failures
from agenteval.results.analysis.formatting import criterion_texts, percent, seconds
from agenteval.results.analysis.outliers import Outliers
from agenteval.results.analysis.personas import PersonaStats
from agenteval.results.analysis.summary import Counted, Summary
from agenteval.results.analysis.summary_baseline import BaselineComparison
from agenteval.results.analysis.trend import Trends
from agenteval.suite.evaluation import Aggregate, Tone

Priority = Literal["high", "medium", "low"]

_DROP = 0.05
_ABSENT_SHARE = 0.1
_MOST_PERSONAS = 5
_MOST_METRICS = 3
_LONGEST_REASON = 160
_RANKS: Mapping[Priority, int] = {"high": 0, "medium": 1, "low": 2}


@dataclass(frozen=True, slots=True)
class Recommendation:
    """One recommendation.

    Attributes:
        summary: the finding.
        action: the step to take.
        metrics: the figures behind it.
    """

    title: str
    priority: Priority
    summary: str
    action: str
    metrics: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Findings:
    """The input of recommendations; ``None`` or empty if not computed."""

    summary: Summary
    aggregate: Aggregate
    personas: Mapping[str, PersonaStats]
    checks: tuple[Check, ...]
    failures: Failures | None
    trends: Trends | None
    outliers: Outliers | None
    comparison: BaselineComparison | None


@dataclass(frozen=True, slots=True)
class _Finding:
    kind: Kind
    priority: Priority
    texts: Mapping[str, str]
    metrics: Mapping[str, Any]


def recommend(findings: Findings, tone: Tone) -> tuple[Recommendation, ...]:
    """Return all recommendations, the most urgent first, each title once."""
    found = sorted(_findings(findings), key=lambda finding: _RANKS[finding.priority])
    recommendations: dict[str, Recommendation] = {}
    for finding in found:
        advice = ADVICE[finding.kind][tone]
        shortened = {key: _short(text) for key, text in finding.texts.items()}
        texts = {"label": shortened.get("name", "").replace("_", " "), **shortened}
        title = TITLES[finding.kind].format_map(texts)
        item = Recommendation(
            title, finding.priority, advice.finding.format_map(texts), advice.step.format_map(texts), finding.metrics
        )
        recommendations.setdefault(title, item)
    return tuple(recommendations.values())


def _findings(findings: Findings) -> Iterator[_Finding]:
    yield from _unmet(findings.checks)
    yield from _low_pass_rate(findings.summary, findings.aggregate.threshold)
    if findings.comparison:
        yield from _drops(findings.comparison)
    yield from _low_personas(findings.personas, findings.aggregate.threshold)
    yield from _weak_metrics(findings.summary, findings.aggregate.threshold)
    if findings.failures:
        yield from _causes(findings.failures)
    if findings.trends:
        yield from _decline(findings.trends)
    yield from _absences(findings.summary)
    if findings.outliers:
        yield from _slow(findings.outliers)


def _unmet(checks: Iterable[Check]) -> Iterator[_Finding]:
    for check in checks:
        if check.met is False and check.value is not None:
            value, limit = criterion_texts(check.criterion)
            texts = {"name": check.name, "value": value, "limit": limit}
            texts["label"] = check.key.replace("_", " ")
            numbers = {"criterion": check.name, "value": check.value, "threshold": check.threshold}
            yield _Finding("criterion", "high", texts, numbers)


def _low_pass_rate(summary: Summary, threshold: float) -> Iterator[_Finding]:
    totals = summary.totals
    if totals.pass_rate is None or passes(totals.pass_rate, threshold):
        return
    reason, count = summary.top_reasons[0] if summary.top_reasons else ("none was given", 0)
    texts = {"value": percent(totals.pass_rate), "passed": f"{totals.passed:,}", "judged": f"{totals.judged:,}"}
    texts |= {"limit": percent(threshold), "reason": reason, "count": f"{count:,}"}
    yield _Finding("pass_rate", "high", texts, {"pass_rate": totals.pass_rate, "threshold": threshold})


def _drops(comparison: BaselineComparison) -> Iterator[_Finding]:
    rate = comparison.totals.get("pass_rate")
    if rate and rate.change < -_DROP:
        texts = {"before": percent(rate.baseline), "value": percent(rate.current)}
        yield _Finding("dropped_total", "high", texts, {"pass_rate": rate.current, "baseline": rate.baseline})
    for name, delta in sorted(comparison.metrics.items(), key=lambda item: item[1].change):
        if delta.change < -_DROP:
            texts = {"name": name, "before": f"{delta.baseline:.3f}", "value": f"{delta.current:.3f}"}
            texts["change"] = f"{delta.change:+.3f}"
            numbers = {"evaluator": name, "delta": delta.change, "baseline": delta.baseline, "current": delta.current}
            yield _Finding("dropped_metric", "high", texts, numbers)


def _low_personas(personas: Mapping[str, PersonaStats], threshold: float) -> Iterator[_Finding]:
    if len(personas) < 2:
        return
    rates = [(stats.pass_rate, name, stats) for name, stats in personas.items() if stats.pass_rate is not None]
    low = sorted(entry[:2] for entry in rates if not passes(entry[0], threshold))
    for rate, name in low[:_MOST_PERSONAS]:
        stats = personas[name]
        texts = {
            "name": name,
            "value": percent(rate),
            "limit": percent(threshold),
            "reason": _first(stats.top_reasons),
        }
        texts |= {"passed": f"{stats.passed:,}", "judged": f"{stats.judged:,}"}
        yield _Finding("persona", "medium", texts, {"persona": name, "pass_rate": rate, "threshold": threshold})


def _weak_metrics(summary: Summary, threshold: float) -> Iterator[_Finding]:
    weak = sorted(
        (stats.scores.mean, name)
        for name, stats in summary.metrics.items()
        if passes(stats.scores.average, threshold) is False
    )
    for mean, name in weak[:_MOST_METRICS]:
        stats = summary.metrics[name]
        texts = {"name": name, "value": f"{mean:.2f}", "limit": f"{threshold:.2f}"}
        texts |= {"passed": f"{stats.reached:,}", "judged": f"{stats.scores.count:,}"}
        yield _Finding("weak_metric", "medium", texts, {"evaluator": name, "average": mean, "threshold": threshold})


def _causes(failures: Failures) -> Iterator[_Finding]:
    for name, cause in list((failures.causes or {}).items())[:1]:
        texts = {"name": name, "count": f"{cause.count:,}", "judged": f"{failures.count:,}"}
        texts["examples"] = ", ".join(cause.examples)
        yield _Finding("cause", "medium", texts, {"category": name, "count": cause.count})


def _decline(trends: Trends) -> Iterator[_Finding]:
    if trends.scores and trends.scores.direction == "decreasing":
        texts = {"change": f"{-trends.scores.slope:.3f}", "count": f"{len(trends.scores.points):,}"}
        yield _Finding("trend", "medium", texts, {"trend": "decreasing", "slope": trends.scores.slope})


def _absences(summary: Summary) -> Iterator[_Finding]:
    most = sorted(summary.metrics.items(), key=lambda item: -item[1].absent)[:_MOST_METRICS]
    for name, stats in most:
        possible = stats.absent + stats.scores.count
        if possible and stats.absent / possible > _ABSENT_SHARE:
            texts = {"name": name, "count": f"{stats.absent:,}", "judged": f"{possible:,}"}
            texts["reason"] = stats.absent_reason or ""
            yield _Finding(
                "absent", "medium", texts, {"evaluator": name, "absent": stats.absent, "answers": possible}
            )


def _slow(outliers: Outliers) -> Iterator[_Finding]:
    limits = outliers.durations.fences
    slow = [item for item in outliers.durations.outliers if limits and item.value > limits.upper]
    if limits and slow:
        texts = {
            "count": f"{len(slow):,} answer{'' if len(slow) == 1 else 's'}",
            "limit": seconds(limits.upper),
            "value": seconds(slow[0].value),
        }
        texts["examples"] = ", ".join(item.answer.name for item in slow[:2])
        yield _Finding("slow", "low", texts, {"count": len(slow), "longest_ms": slow[0].value})


def _first(reasons: Counted) -> str:
    return reasons[0][0] if reasons else "no reason given"


def _short(text: str) -> str:
    line = " ".join(text[: 4 * _LONGEST_REASON].split())
    return line if len(line) <= _LONGEST_REASON else f"{line[:_LONGEST_REASON].rstrip()}…"
