"""What a suite wants to know of a run as a whole: criteria that must hold, analyses, and how they are reported.

Data only; ``agenteval.results.analysis`` computes, ``agenteval.report`` shows.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

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


@dataclass(frozen=True, slots=True)
class Aggregate:
    """How the scores of one answer become one score, and from where on it passes.

    Scores that are absent (skipped, or an error) take no part, and neither does their weight.

    Attributes:
        method: ``weighted_sum``: Σ(score·weight) / Σ(weight); ``average``: the mean over what has a weight above 0.
        threshold: the score needed, 0..1.
        weights: metric id → weight.
    """

    method: AggregateMethod = "weighted_sum"
    threshold: float = 0.7
    weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Criteria:
    """Conditions on a run as a whole; one that is not met fails the gate. ``None`` and empty ask for nothing.

    Attributes:
        all_successful: every case had an answer, and no trace says that it failed.
        avg_response_ms: the most that the mean time for an answer may be.
        max_response_ms: the most that any answer may take.
        error_rate_percent: the most cases without success, 0..100.
        quality: metric id → the mean score that it must reach; ``None`` takes the aggregate's threshold.
        tool_calls: what must hold of all tool calls.
    """

    all_successful: bool = False
    avg_response_ms: float | None = None
    max_response_ms: float | None = None
    error_rate_percent: float | None = None
    quality: Mapping[str, float | None] = field(default_factory=dict)
    tool_calls: tuple[ToolCheck, ...] = ()


@dataclass(frozen=True, slots=True)
class AlertRule:
    """A condition on a number of the run that is worth a warning, ``error_rate > 5``."""

    metric: str
    operator: Operator
    threshold: float


@dataclass(frozen=True, slots=True)
class Analyses:
    """What is computed besides the scores.

    Attributes:
        personas: break everything down by persona.
        focus_personas: those that are looked at more closely; empty is all.
        outliers: find answers that took unusually long, or scored unusually.
        outlier_handling: whether they count in averages.
        trend: whether scores rise or fall over the iterations.
        failures: list failures; with ``failure_causes`` by what caused them.
        baseline: absolute path of an earlier summary to compare with.
        statistics: confidence intervals and tests, at
        significance: level of the tests, and
        confidence: level of the intervals, 0..1.
        alerts: conditions that become warnings.
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


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """How the evaluation of a suite is written down, beside the reports that every run has.

    Attributes:
        sections: shown or not; one that is not named follows from the style.
        template: absolute path of an own HTML template.
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


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Everything that a suite wants to know of a run as a whole.

    Attributes:
        goal: in the suite's words.
        report: ``None`` where only the usual reports are wanted.
    """

    goal: str | None = None
    criteria: Criteria = field(default_factory=Criteria)
    analyses: Analyses = field(default_factory=Analyses)
    report: EvaluationReport | None = None


#: What an alert can watch, and what its threshold means. The id of a metric watches its mean score, 0..1.
ALERT_METRICS: Mapping[str, str] = {
    "error_rate": "percent of answers without success",
    "pass_rate": "passed of judged answers, 0..1",
    "avg_score": "mean final score, 0..1",
    "average_score": "mean final score, 0..1",
    "min_score": "lowest mean score of a metric, 0..1",
    "total_traces": "answers",
    "passed_traces": "answers that passed",
    "failed_traces": "answers that did not pass",
    "absent_scores": "scores that could not be had",
    "avg_response_time": "mean time in ms",
    "max_response_time": "longest time in ms",
    "p50_response_time": "time in ms that half of the answers kept",
    "p90_response_time": "time in ms that 90 % of the answers kept",
    "p95_response_time": "time in ms that 95 % of the answers kept",
    "p99_response_time": "time in ms that 99 % of the answers kept",
    "avg_tokens": "mean tokens of an answer",
}

_SHARES = frozenset({"pass_rate", "avg_score", "average_score", "min_score"})

_PERCENT = 100


def known_alert_metrics(metric_ids: Iterable[str] = ()) -> tuple[str, ...]:
    """Every name that an alert may have: the built-in ones, then the ids of the suite's metrics."""
    return tuple(dict.fromkeys((*ALERT_METRICS, *metric_ids)))


def alert_problem(rule: AlertRule, metric_ids: Collection[str] = ()) -> str | None:
    """What is wrong with an alert of a suite with these metrics, in one sentence; ``None`` if nothing is."""
    known = known_alert_metrics(metric_ids)
    if rule.metric not in known:
        alike = difflib.get_close_matches(rule.metric, known, n=1)
        guess = f" (did you mean {alike[0]!r}?)" if alike else ""
        return f"unknown alert metric {rule.metric!r}{guess}; allowed are {', '.join(known)}"
    if rule.metric in _SHARES or rule.metric not in ALERT_METRICS:
        most, unit = 1, "0..1"
    elif rule.metric == "error_rate":
        most, unit = _PERCENT, "percent, 0..100"
    else:
        return None
    if 0 <= rule.threshold <= most:
        return None
    return f"the threshold {rule.threshold:g} is no value of {rule.metric}, which is {unit}"


@dataclass(frozen=True, slots=True)
class JudgeLimits:
    """Limits for all judges of a suite together.

    They say nothing about how an answer is judged, so they do not show in what identifies a case (its ``repr``).

    Attributes:
        sample_rate: the share of answers that are judged, 0..1.
        max_calls: answers of models in one run; ``None`` is no limit.
        timeout_s: for one call; ``None`` is the run's.
        cache: file of earlier judgements, relative to the suite's directory; ``None`` keeps none.
    """

    sample_rate: float = field(default=1.0, repr=False)
    max_calls: int | None = field(default=50, repr=False)
    timeout_s: float | None = field(default=60.0, repr=False)
    cache: str | None = field(default="evaluation_cache.jsonl", repr=False)
