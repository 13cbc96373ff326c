"""Derives recommendations from the findings of a run, and words them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from agenteval.results.analysis.answers import Outliers
from agenteval.results.analysis.baseline import BaselineComparison
from agenteval.results.analysis.criteria import Check, Trends
from agenteval.results.analysis.formatting import criterion_texts, percent, seconds
from agenteval.results.analysis.summary import AnalysisSummary, Counted, PersonaStats, SortedFailures
from agenteval.results.rollup import passes
from agenteval.suite.evaluation import Aggregate, Tone

# The texts of recommendations, for each kind and tone: the finding and the step to take.
#
# Placeholders stand for numbers and names that :mod:`agenteval.results.analysis.recommendations` fills in.


Kind = Literal[
    "criterion",
    "pass_rate",
    "dropped_total",
    "dropped_metric",
    "persona",
    "weak_metric",
    "cause",
    "trend",
    "absent",
    "slow",
]


class Advice(NamedTuple):
    """The texts of one recommendation: the finding and the step to take."""

    finding: str
    step: str


#: Titles name the subject and are the same in every tone.
TITLES: Mapping[Kind, str] = {
    "criterion": "Meet the condition on {label}",
    "pass_rate": "Raise the pass rate",
    "dropped_total": "Win back what was lost against the baseline",
    "dropped_metric": "Win back {name}",
    "persona": "Serve {name} better",
    "weak_metric": "Improve {name}",
    "cause": "Fix failures by {label}",
    "trend": "Stop the decline of scores",
    "absent": "Get the missing scores of {name}",
    "slow": "Look at unusually slow answers",
}

ADVICE: Mapping[Kind, Mapping[Tone, Advice]] = {
    "criterion": {
        "technical": Advice(
            "Criterion {name}: {value}, required {limit}.",
            "Reproduce with the cases that move {name} most, change one thing, and run the suite again.",
        ),
        "executive": Advice(
            "A success criterion is not met. {label}: {value}, agreed: {limit}.",
            "Decide whether this blocks the release: {label}.",
        ),
        "balanced": Advice(
            "{label}: {value}, required: {limit}.",
            "Start with the answers that count most against {label}, and run the suite again.",
        ),
    },
    "pass_rate": {
        "technical": Advice(
            "pass_rate {value} ({passed}/{judged}) < {limit}. Most frequent reason: {reason}.",
            "Fix the cause behind the most frequent reason first; it accounts for {count} scores.",
        ),
        "executive": Advice(
            "Only {value} of the answers are good enough; the target is {limit}. Most frequent reason: {reason}.",
            "Fix the most frequent complaint first: {reason}.",
        ),
        "balanced": Advice(
            "{value} of the answers pass ({passed} of {judged}); target: {limit}. Most frequent reason: {reason}.",
            "Work on the most frequent reason first: {reason}.",
        ),
    },
    "dropped_total": {
        "technical": Advice(
            "pass_rate {before} → {value} against the baseline.",
            "Bisect the changes of prompt, model and tools since the baseline on the cases that fail now.",
        ),
        "executive": Advice(
            "Quality went down: {before} of the answers were good enough, now it is {value}.",
            "Ask what changed since the last good state, and whether it is worth the loss.",
        ),
        "balanced": Advice(
            "The pass rate fell from {before} to {value} since the baseline.",
            "Go through the changes since the baseline, beginning with the cases that fail now.",
        ),
    },
    "dropped_metric": {
        "technical": Advice(
            "{name}: mean {before} → {value} (change {change}) against the baseline.",
            "Compare prompts, model and tools with the baseline's on the answers with the lowest {name}.",
        ),
        "executive": Advice(
            "{label} fell since the last good state: {before} then, {value} now.",
            "Have the change that cost {label} found and taken back or mended.",
        ),
        "balanced": Advice(
            "{name} fell from {before} to {value} since the baseline.",
            "Look at the answers with the lowest {name} and at what changed since the baseline.",
        ),
    },
    "persona": {
        "technical": Advice(
            "persona {name}: pass_rate {value} ({passed}/{judged}) < {limit}.",
            "Add cases for {name} and adjust the prompt for them; their most frequent reason: {reason}.",
        ),
        "executive": Advice(
            "Users like {name} are served worse than intended: {value} of the answers to them are good enough.",
            "Decide how much {name} matters, and plan the work for these users.",
        ),
        "balanced": Advice(
            "Of the answers to {name}, {value} pass; the aim is {limit}.",
            "Adapt prompts and examples to {name}; most frequent reason: {reason}.",
        ),
    },
    "weak_metric": {
        "technical": Advice(
            "{name}: mean {value} < threshold {limit}, reached by {passed} of {judged} scores.",
            "Inspect the answers with the lowest {name} in per_trace.jsonl.",
        ),
        "executive": Advice(
            "{label} is a weak point: {value} of 1; the target is {limit}.",
            "Put the next round of work into {label}.",
        ),
        "balanced": Advice(
            "{name} is too low: {value} on average; the target is {limit}.",
            "Read the answers with the lowest {name} and look for what they have in common.",
        ),
    },
    "cause": {
        "technical": Advice(
            "Category {name}: {count} of {judged} failed answers, for example {examples}.",
            "Debug {examples} and add a regression case for what is found.",
        ),
        "executive": Advice(
            "{label} plays a part in {count} of {judged} failures.",
            "Have the failures around {label} fixed as one piece of work.",
        ),
        "balanced": Advice(
            "{label} plays a part in {count} of {judged} failed answers, for example {examples}.",
            "Begin with {examples}.",
        ),
    },
    "trend": {
        "technical": Advice(
            "final_score falls by {change} per iteration over {count} iterations.",
            "Check for state that leaks between iterations, rate limits, and growing context.",
        ),
        "executive": Advice(
            "Answers get worse the longer the agent runs.",
            "Have it found out why quality does not last.",
        ),
        "balanced": Advice(
            "Scores fall by {change} from iteration to iteration.",
            "Check what differs between early and late iterations: memory, limits, data.",
        ),
    },
    "absent": {
        "technical": Advice(
            "{name}: {count} of {judged} scores absent; most frequent: {reason}.",
            "Raise limits.max_llm_calls or limits.sample_rate for {name}, or mend the judge.",
        ),
        "executive": Advice(
            "{label} was not measured on {count} of {judged} answers; the numbers say less than they could.",
            "Allow more judging of {label} where the result has to carry a decision.",
        ),
        "balanced": Advice(
            "{name} has no score for {count} of {judged} answers; most frequent reason: {reason}.",
            "Allow more judge calls for {name}, or look at why they fail.",
        ),
    },
    "slow": {
        "technical": Advice(
            "Time above {limit} (Q3 + 1.5 IQR): {count}, the longest {value}, for example {examples}.",
            "Profile {examples}: retries, tool timeouts, long outputs.",
        ),
        "executive": Advice(
            "Users would have waited unusually long for {count}, up to {value}.",
            "Have the slowest answers looked at before users meet them.",
        ),
        "balanced": Advice(
            "{count} took unusually long, up to {value}, for example {examples}.",
            "Find out why these were slow: {examples}.",
        ),
    },
}

Priority = Literal["high", "medium", "low"]

_DROP = 0.05
_ABSENT_SHARE = 0.1
_MOST_PERSONAS = 5
_MOST_METRICS = 3
_LONGEST_REASON = 160
_RANKS: Mapping[Priority, int] = {"high": 0, "medium": 1, "low": 2}


@dataclass(frozen=True, slots=True)
class Recommendation:
    """One recommendation."""

    title: str
    priority: Priority
    summary: str
    action: str
    metrics: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Findings:
    """The input of recommendations; ``None`` or empty if not computed."""

    summary: AnalysisSummary
    aggregate: Aggregate
    personas: Mapping[str, PersonaStats]
    checks: tuple[Check, ...]
    failures: SortedFailures | None
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


def _low_pass_rate(summary: AnalysisSummary, threshold: float) -> Iterator[_Finding]:
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


def _weak_metrics(summary: AnalysisSummary, threshold: float) -> Iterator[_Finding]:
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


def _causes(failures: SortedFailures) -> Iterator[_Finding]:
    for name, cause in list((failures.causes or {}).items())[:1]:
        texts = {"name": name, "count": f"{cause.count:,}", "judged": f"{failures.count:,}"}
        texts["examples"] = ", ".join(cause.examples)
        yield _Finding("cause", "medium", texts, {"category": name, "count": cause.count})


def _decline(trends: Trends) -> Iterator[_Finding]:
    if trends.scores and trends.scores.direction == "decreasing":
        texts = {"change": f"{-trends.scores.slope:.3f}", "count": f"{len(trends.scores.points):,}"}
        yield _Finding("trend", "medium", texts, {"trend": "decreasing", "slope": trends.scores.slope})


def _absences(summary: AnalysisSummary) -> Iterator[_Finding]:
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
