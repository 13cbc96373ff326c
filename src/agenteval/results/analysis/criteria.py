"""Success criteria of a whole run, alerts, and trends over the iterations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agenteval.results.analysis.answers import Averaged, Moments
from agenteval.results.analysis.summary import AnalysisSummary, MetricStats
from agenteval.results.case import Criterion
from agenteval.results.rollup import ROUNDING, passes
from agenteval.suite.evaluation import Aggregate, AlertRule, Criteria, Operator, ToolCheck

# Success criteria of a whole run.
#
# In results.json times are seconds, and rates are 0..1; the details are in the units of FluxLoop's summary.json, with
# milliseconds and percent.


CriterionSection = Literal["performance", "quality", "functionality"]
_PREFIXES: Mapping[CriterionSection, str] = {
    "performance": "",
    "quality": "quality.",
    "functionality": "tool_calling.",
}
_MS = 1000
_PERCENT = 100


@dataclass(frozen=True, slots=True)
class Check:
    """A criterion and its result.

    Attributes:
        met: ``None`` without data.
        value: seconds or 0..1.
        details: the result in the form of FluxLoop's summary.json.
    """

    section: CriterionSection
    key: str
    met: bool | None
    value: float | None
    threshold: float
    details: Mapping[str, Any]

    @property
    def name(self) -> str:
        """``avg_response_time``, ``quality.<metric>`` or ``tool_calling.<check>``."""
        return f"{_PREFIXES[self.section]}{self.key}"

    @property
    def criterion(self) -> Criterion:
        """The criterion as results.json records it."""
        return Criterion(name=self.name, met=self.met, value=self.value, threshold=self.threshold)


def check_criteria(summary: AnalysisSummary, criteria: Criteria, aggregate: Aggregate) -> tuple[Check, ...]:
    """Check every criterion of the suite. A value equal to its limit meets it.

    Args:
        summary: its averages omit outliers if the suite removes them; maxima and rates count every answer.
        aggregate: its threshold applies to a quality criterion without a threshold.
    """
    return (
        *_performance(summary, criteria),
        *(
            _quality(name, summary.metrics.get(name), aggregate.threshold if own is None else own)
            for name, own in criteria.quality.items()
        ),
        *(_tool_check(name, summary) for name in criteria.tool_calls),
    )


def overall(checks: Iterable[Check]) -> bool | None:
    """Return whether all criteria are met, which one without data is not; ``None`` without criteria."""
    met = [check.met is True for check in checks]
    return all(met) if met else None


def _performance(summary: AnalysisSummary, criteria: Criteria) -> Iterator[Check]:
    totals, times = summary.totals, summary.times
    if criteria.all_successful:
        share = totals.successful / totals.answers if totals.answers else None
        counts = {"total_traces": totals.answers, "successful_traces": totals.successful}
        met = None if share is None else totals.successful == totals.answers
        yield Check("performance", "all_traces_successful", met, share, 1.0, {"expected": True, **counts})
    if criteria.avg_response_ms is not None:
        average, count = times.averaged.average, times.averaged.count
        yield _time(
            "avg_response_time", "average_ms", average, criteria.avg_response_ms, count=count, missing=times.missing
        )
    if criteria.max_response_ms is not None:
        count = len(times.ordered)
        yield _time(
            "max_response_time", "max_ms", times.maximum, criteria.max_response_ms, count=count, missing=times.missing
        )
    if criteria.error_rate_percent is not None:
        yield _error_rate(summary, criteria.error_rate_percent)


def _time(key: str, unit: str, value_ms: float | None, limit_ms: float, *, count: int, missing: int) -> Check:
    """Check a latency; it is not known whether the limit is met if an answer has none."""
    details: dict[str, Any] = {unit: value_ms, "threshold_ms": limit_ms, "trace_count": count}
    met = _within(value_ms, limit_ms)
    if value_ms is None:
        details["message"] = "no answer says how long it took"
    elif met and missing:
        met = None
        details["message"] = f"{missing} of {count + missing} answers without a duration"
    value = None if value_ms is None else value_ms / _MS
    return Check("performance", key, met, value, limit_ms / _MS, details)


def _error_rate(summary: AnalysisSummary, limit_percent: float) -> Check:
    rate = summary.totals.error_rate
    percent = None if rate is None else _PERCENT * rate
    details: dict[str, Any] = {
        "error_rate_percent": percent,
        "threshold_percent": limit_percent,
        "total_traces": summary.totals.answers,
        "failure_count": summary.totals.answers - summary.totals.successful,
    }
    if rate is None:
        details["message"] = "there are no answers"
    return Check(
        "performance", "error_rate", _within(percent, limit_percent), rate, limit_percent / _PERCENT, details
    )


def _quality(name: str, stats: MetricStats | None, threshold: float) -> Check:
    average = stats.scores.average if stats else None
    count = stats.scores.count if stats else 0
    details: dict[str, Any] = {"average_score": average, "threshold": threshold}
    if stats and count:
        details["pass_rate"] = stats.reached / count
    details["trace_count"] = count
    if average is None:
        details["message"] = f"there are no scores of {name}"
    return Check("quality", name, passes(average, threshold), average, threshold, details)


def _tool_check(name: ToolCheck, summary: AnalysisSummary) -> Check:
    shares = summary.tool_checks.get(name)
    ratio = shares.average if shares else None
    details: dict[str, Any] = {"ratio": ratio, "trace_count": shares.count if shares else 0}
    if ratio is None:
        details["message"] = f"no answer has data about {name}"
    return Check("functionality", name, passes(ratio, 1.0), ratio, 1.0, details)


def _within(value: float | None, limit: float) -> bool | None:
    return None if value is None else value <= limit + ROUNDING


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
    """

    rule: AlertRule
    value: float | None
    triggered: bool

    def __str__(self) -> str:
        condition = f"{self.rule.metric} {self.rule.operator} {self.rule.threshold:g}"
        return f"{condition}: no data" if self.value is None else f"{condition}: it is {self.value:.4g}"


def check_alerts(rules: Iterable[AlertRule], summary: AnalysisSummary) -> tuple[Alert, ...]:
    """Check every rule; an unknown metric has no value."""
    values = _values(summary)
    return tuple(_alert(rule, values.get(rule.metric)) for rule in rules)


def _alert(rule: AlertRule, value: float | None) -> Alert:
    return Alert(rule, value, value is not None and _COMPARISONS[rule.operator](value, rule.threshold))


def _values(summary: AnalysisSummary) -> Mapping[str, float | None]:
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


Direction = Literal["increasing", "decreasing", "stable"]
_TOLERANCE = 0.01


@dataclass(frozen=True, slots=True)
class Trend:
    """The trend of a mean.

    Attributes:
        slope: change per iteration, from the first to the last one; 0 for a single iteration.
        points: iteration and its mean, in order.
    """

    direction: Direction
    slope: float
    points: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Trends:
    """Trends of final scores and of latencies in ms; ``None`` without data."""

    scores: Trend | None
    durations: Trend | None


def find_trends(averages: Averaged) -> Trends:
    """Return the trends over the iterations, without outliers if the suite removes them."""
    return Trends(
        scores=trend((answer.order, answer.final_score) for answer in averages.scored),
        durations=relative_trend((answer.order, answer.duration_ms) for answer in averages.timed),
    )


def trend(values: Iterable[tuple[int, float | None]]) -> Trend | None:
    """Return the trend of scores: stable while the slope is within ±0.01 for each iteration."""
    points = _points(values)
    return _trend(points, _TOLERANCE) if points else None


def relative_trend(values: Iterable[tuple[int, float | None]]) -> Trend | None:
    """Return the trend of values: stable while the slope per iteration is within ±1 % of their mean."""
    points = _points(values)
    return _trend(points, _TOLERANCE * abs(Moments.of([mean for _, mean in points]).mean)) if points else None


def _points(values: Iterable[tuple[int, float | None]]) -> tuple[tuple[int, float], ...]:
    groups: dict[int, list[float]] = defaultdict(list)
    for iteration, value in values:
        if value is not None:
            groups[iteration].append(value)
    return tuple((iteration, Moments.of(groups[iteration]).mean) for iteration in sorted(groups))


def _trend(points: Sequence[tuple[int, float]], tolerance: float) -> Trend:
    (first, start), (last, end) = points[0], points[-1]
    slope = (end - start) / (last - first) if last != first else 0.0
    direction: Direction = "stable"
    if abs(slope) > tolerance:
        direction = "increasing" if slope > 0 else "decreasing"
    return Trend(direction, slope, tuple(points))
