"""Evaluation of a whole run: criteria, analyses, and their report.

Data only; ``agenteval.results.analysis`` computes, ``agenteval.report`` shows.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Mapping
from operator import or_
from typing import Any, Literal

from agenteval.core.records import dataclass, field
from agenteval.core.text import choices, matches_everything


def why_nothing(rule: Mapping[str, Any]) -> str:
    """Return why a rule checks nothing; empty if it checks something."""
    flags = [getattr(re, name) for name in rule.get("flags", ())]
    if rule["check"] == "matches_regex" and matches_everything(rule["pattern"], functools.reduce(or_, flags, 0)):
        return "every text matches this pattern"
    if rule["check"] == "similarity" and rule["expected_path"] == rule.get("target", "output"):
        return "a text is always like itself"
    return ""


AggregateMethod = Literal["weighted_sum", "average"]

ToolCheck = Literal[
    "all_calls_successful", "appropriate_selection", "correct_parameters", "proper_timing", "handles_failures"
]

OutlierHandling = Literal["remove", "analyze_separately", "include"]

Operator = Literal["<", "<=", ">", ">=", "=="]

Style = Literal["quick", "standard", "detailed"]

Tone = Literal["technical", "executive", "balanced"]

Section = Literal[
    "executive_summary",
    "key_metrics",
    "detailed_results",
    "statistical_analysis",
    "failure_cases",
    "success_examples",
    "recommendations",
    "action_items",
]


@dataclass(frozen=True)
class Aggregate:
    """Aggregation of the scores of an answer into one score with a threshold.

    Scores of metrics that do not apply are ignored, with their weights. Without a score that is missing because of an
    error or a limit, there is no aggregated score.

    Attributes:
        method: ``weighted_sum``: Σ(score·weight) / Σ(weight); ``average``: the mean of scores with weight above 0.
    """

    method: AggregateMethod = "weighted_sum"
    threshold: float = 0.7
    weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Criteria:
    """Conditions on a whole run; the gate fails if one is not met. ``None`` and empty values set none.

    Attributes:
        all_successful: every case has an answer, and no trace is marked as failed.
        avg_response_ms: limit of the mean response time.
        error_rate_percent: limit of cases without success, 0..100.
        quality: metric id → required mean score; ``None`` uses the aggregate's threshold.
    """

    all_successful: bool = False
    avg_response_ms: float | None = None
    max_response_ms: float | None = None
    error_rate_percent: float | None = None
    quality: Mapping[str, float | None] = field(default_factory=dict)
    tool_calls: tuple[ToolCheck, ...] = ()


@dataclass(frozen=True)
class AlertRule:
    """A condition on a figure of the run that causes a warning, ``error_rate > 5``."""

    metric: str
    operator: Operator
    threshold: float


@dataclass(frozen=True)
class Analyses:
    """Analyses besides the scores.

    Attributes:
        focus_personas: personas with more detail; empty means all.
        outliers: find answers with an unusual response time or score.
        trend: whether scores rise or fall over the iterations.
        failures: list failures; with ``failure_causes``, grouped by cause.
        baseline: absolute path of an earlier summary to compare with.
        confidence: level of the intervals, 0..1.
    """

    personas: bool = True
    focus_personas: tuple[str, ...] = ()
    outliers: bool = False
    outlier_handling: OutlierHandling = "analyze_separately"
    trend: bool = False
    failures: bool = False
    failure_causes: bool = False
    baseline: str | None = None
    statistics: bool = False
    significance: float = 0.05
    confidence: float = 0.95
    alerts: tuple[AlertRule, ...] = ()


@dataclass(frozen=True)
class EvaluationReport:
    """Report of a suite's evaluation, in addition to the reports of every run.

    Attributes:
        sections: section → whether it is shown; the style decides for other sections.
    """

    style: Style = "standard"
    tone: Tone = "balanced"
    sections: Mapping[Section, bool] = field(default_factory=dict)
    charts: bool = True
    tables: bool = True
    interactive: bool = True
    markdown: bool = True
    html: bool = True
    template: str | None = None


@dataclass(frozen=True)
class Evaluation:
    """Evaluation of a whole run.

    Attributes:
        report: report of the evaluation; ``None`` for only the usual reports.
    """

    goal: str | None = None
    criteria: Criteria = field(default_factory=Criteria)
    analyses: Analyses = field(default_factory=Analyses)
    report: EvaluationReport | None = None


#: Figures for alerts, and the unit of their threshold. The id of a metric stands for its mean score, 0..1.
ALERT_METRICS: Mapping[str, str] = {
    "error_rate": "percent of answers without success",
    "pass_rate": "passed of judged answers, 0..1",
    "avg_score": "mean final score, 0..1",
    "average_score": "mean final score, 0..1",
    "min_score": "lowest mean score of a metric, 0..1",
    "total_traces": "answers",
    "passed_traces": "answers that passed",
    "failed_traces": "answers that did not pass",
    "absent_scores": "scores that are absent",
    "avg_response_time": "mean time in ms",
    "max_response_time": "longest time in ms",
    "p50_response_time": "median response time in ms",
    "p90_response_time": "90th percentile of the response time in ms",
    "p95_response_time": "95th percentile of the response time in ms",
    "p99_response_time": "99th percentile of the response time in ms",
    "avg_tokens": "mean tokens of an answer",
}

_SHARES = frozenset({"pass_rate", "avg_score", "average_score", "min_score"})

_PERCENT = 100


def known_alert_metrics(metric_ids: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the allowed names of alerts: the built-in ones, then the ids of the suite's metrics."""
    return tuple(dict.fromkeys((*ALERT_METRICS, *metric_ids)))


def alert_problem(rule: AlertRule, metric_ids: Collection[str] = ()) -> str | None:
    """Return the problem of an alert in a suite with these metrics; ``None`` without one."""
    known = known_alert_metrics(metric_ids)
    if rule.metric not in known:
        return f"unknown alert metric {rule.metric!r}{choices(rule.metric, known)}"
    if rule.metric in _SHARES or rule.metric not in ALERT_METRICS:
        most, unit = 1, "0..1"
    elif rule.metric == "error_rate":
        most, unit = _PERCENT, "percent, 0..100"
    else:
        return None
    if 0 <= rule.threshold <= most:
        return None
    return f"the threshold {rule.threshold:g} is no value of {rule.metric}, which is {unit}"


@dataclass(frozen=True)
class JudgeLimits:
    """Limits for all judges of a suite together.

    They do not change how an answer is judged, so they are not part of a case's fingerprint (the ``repr``).

    Attributes:
        sample_rate: share of answers that are judged, 0..1.
        max_calls: limit of model calls in one run; ``None`` means no limit.
        timeout_s: limit of one call in seconds; ``None`` uses the run's.
        cache: file of earlier judgements, relative to the suite's directory; ``None`` means no cache.
    """

    sample_rate: float = field(default=1.0, repr=False)
    max_calls: int | None = field(default=50, repr=False)
    timeout_s: float | None = field(default=60.0, repr=False)
    cache: str | None = field(default="evaluation_cache.jsonl", repr=False)
