"""Alerts: numbers of a run that are worth a warning where they cross a line."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from agenteval.analysis.aggregate import ROUNDING
from agenteval.analysis.summary import Summary
from agenteval.suite.evaluation import AlertRule, Operator

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
_COMPARISONS: Mapping[Operator, Callable[[float, float], bool]] = {
    "<": lambda value, limit: value < limit - ROUNDING,
    "<=": lambda value, limit: value <= limit + ROUNDING,
    ">": lambda value, limit: value > limit + ROUNDING,
    ">=": lambda value, limit: value >= limit - ROUNDING,
    "==": lambda value, limit: abs(value - limit) <= ROUNDING,
}


@dataclass(frozen=True, slots=True)
class Alert:
    """A rule and what came of it.

    Attributes:
        value: ``None`` where there is nothing to tell from.
        triggered: whether the condition holds.
    """

    rule: AlertRule
    value: float | None
    triggered: bool

    def __str__(self) -> str:
        condition = f"{self.rule.metric} {self.rule.operator} {self.rule.threshold:g}"
        return f"{condition}: no data" if self.value is None else f"{condition}: it is {self.value:.4g}"


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


def check_alerts(rules: Iterable[AlertRule], summary: Summary) -> tuple[Alert, ...]:
    """Every rule with its value; an unknown metric has none."""
    values = _values(summary)
    return tuple(_alert(rule, values.get(rule.metric)) for rule in rules)


def _alert(rule: AlertRule, value: float | None) -> Alert:
    return Alert(rule, value, value is not None and _COMPARISONS[rule.operator](value, rule.threshold))


def _values(summary: Summary) -> Mapping[str, float | None]:
    totals, times = summary.totals, summary.times
    means = {name: stats.scores.average for name, stats in summary.metrics.items()}
    built_in = {
        "error_rate": None if totals.error_rate is None else _PERCENT * totals.error_rate,
        "pass_rate": totals.pass_rate,
        "avg_score": totals.scores.average,
        "average_score": totals.scores.average,
        "min_score": min((mean for mean in means.values() if mean is not None), default=None),
        "total_traces": totals.answers,
        "passed_traces": totals.passed,
        "failed_traces": totals.judged - totals.passed,
        "absent_scores": sum(stats.absent for stats in summary.metrics.values()),
        "avg_response_time": times.averaged.average,
        "max_response_time": times.maximum,
        "p50_response_time": times.quantile(0.5),
        "p90_response_time": times.quantile(0.9),
        "p95_response_time": times.quantile(0.95),
        "p99_response_time": times.quantile(0.99),
        "avg_tokens": summary.tokens.average,
    }
    return {**means, **built_in}
