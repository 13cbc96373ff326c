"""Success criteria of a whole run.

In results.json times are seconds, and rates are 0..1; the details are in the units of FluxLoop's summary.json, with
milliseconds and percent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agenteval.results.analysis.aggregate import ROUNDING, passes
from agenteval.results.analysis.summary import MetricStats, Summary
from agenteval.results.case import Criterion
from agenteval.suite.evaluation import Aggregate, Criteria, ToolCheck

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
        key: name inside its section.
        met: ``None`` without data.
        value: seconds or 0..1.
        threshold: in the same unit.
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


def check_criteria(summary: Summary, criteria: Criteria, aggregate: Aggregate) -> tuple[Check, ...]:
    """Check every criterion of the suite. A value equal to its limit meets it.

    Args:
        summary: its averages omit outliers if the suite removes them; maxima and rates count every answer.
        criteria: the criteria of the suite.
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


def _performance(summary: Summary, criteria: Criteria) -> Iterator[Check]:
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


def _error_rate(summary: Summary, limit_percent: float) -> Check:
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


def _tool_check(name: ToolCheck, summary: Summary) -> Check:
    shares = summary.tool_checks.get(name)
    ratio = shares.average if shares else None
    details: dict[str, Any] = {"ratio": ratio, "trace_count": shares.count if shares else 0}
    if ratio is None:
        details["message"] = f"no answer has data about {name}"
    return Check("functionality", name, passes(ratio, 1.0), ratio, 1.0, details)


def _within(value: float | None, limit: float) -> bool | None:
    return None if value is None else value <= limit + ROUNDING
