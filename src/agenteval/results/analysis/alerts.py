"""Alerts: warnings about figures of a run that cross a threshold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from agenteval.results.analysis.aggregate import ROUNDING
from agenteval.results.analysis.summary import Summary
from agenteval.suite.evaluation import AlertRule, Operator

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
    """An alert rule and its result.

    Attributes:
        value: ``None`` without data.
        triggered: whether the condition holds.
    """

    rule: AlertRule
    value: float | None
    triggered: bool

    def __str__(self) -> str:
        condition = f"{self.rule.metric} {self.rule.operator} {self.rule.threshold:g}"
        return f"{condition}: no data" if self.value is None else f"{condition}: it is {self.value:.4g}"


def check_alerts(rules: Iterable[AlertRule], summary: Summary) -> tuple[Alert, ...]:
    """Check every rule; an unknown metric has no value."""
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
