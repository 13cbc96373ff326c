"""Success criteria of a whole run, alerts, and recommendations.

In results.json times are seconds, and rates are 0..1; the details are in the units of FluxLoop's summary.json, with
milliseconds and percent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from agenteval.core.records import dataclass
from agenteval.results.case import Criterion
from agenteval.results.rollup import ROUNDING, passes
from agenteval.results.verdict import criterion_texts, percent
from agenteval.suite.evaluation import AlertRule, Criteria, Operator, ToolCheck

CriterionSection = Literal["performance", "quality", "functionality"]
_PREFIXES: Mapping[CriterionSection, str] = {
    "performance": "",
    "quality": "quality.",
    "functionality": "tool_calling.",
}
_MS = 1000
_PERCENT = 100


@dataclass(frozen=True)
class Check:
    """A criterion and its result, ``None`` without data; ``details`` have the form of FluxLoop's summary.json."""

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


def check_label(check: Check) -> str:
    """Return the name of a criterion in reports: ``max response time``, ``quality: intent recognition``."""
    prefixes = {"performance": "", "quality": "quality: ", "functionality": "tool calls: "}
    return f"{prefixes[check.section]}{check.key.replace('_', ' ')}"


def check_criteria(content: Mapping[str, Any], criteria: Criteria) -> tuple[Check, ...]:
    """Check every criterion of the suite. A value equal to its limit meets it."""
    quality = ((name, content["threshold"] if own is None else own) for name, own in criteria.quality.items())
    return (
        *_performance(content, criteria),
        *(_quality(name, content["evaluator_stats"].get(name, {}), threshold) for name, threshold in quality),
        *(_tool_check(name, content["tool_stats"].get(name, {})) for name in criteria.tool_calls),
    )


def overall(checks: Iterable[Check]) -> bool | None:
    """Return whether all criteria are met, which one without data is not; ``None`` without criteria."""
    met = [check.met is True for check in checks]
    return all(met) if met else None


def _performance(content: Mapping[str, Any], criteria: Criteria) -> Iterator[Check]:
    total, successful, times = content["total_traces"], content["successful_traces"], content["duration_stats"]
    if criteria.all_successful:
        details = {"expected": True, "total_traces": total, "successful_traces": successful}
        share = successful / total if total else None
        met = successful == total if total else None
        yield Check("performance", "all_traces_successful", met, share, 1.0, details)
    if criteria.avg_response_ms is not None:
        yield _time("avg_response_time", "average_ms", times["average"], criteria.avg_response_ms, times)
    if criteria.max_response_ms is not None:
        timed = {**times, "count": times["timed_traces"]}
        yield _time("max_response_time", "max_ms", times["max"], criteria.max_response_ms, timed)
    if criteria.error_rate_percent is not None:
        yield _error_rate(content, criteria.error_rate_percent)


def _time(key: str, unit: str, value_ms: float | None, limit_ms: float, times: Mapping[str, Any]) -> Check:
    """Check a latency; it is not known whether the limit is met if an answer has none."""
    count, missing = times["count"], times["untimed_traces"]
    details: dict[str, Any] = {unit: value_ms, "threshold_ms": limit_ms, "trace_count": count}
    met = _within(value_ms, limit_ms)
    if value_ms is None:
        details["message"] = "no answer says how long it took"
    elif met and missing:
        met = None
        details["message"] = f"{missing} of {count + missing} answers without a duration"
    value = None if value_ms is None else value_ms / _MS
    return Check("performance", key, met, value, limit_ms / _MS, details)


def _error_rate(content: Mapping[str, Any], limit_percent: float) -> Check:
    rate, total = content["error_rate"], content["total_traces"]
    value = None if rate is None else _PERCENT * rate
    details: dict[str, Any] = {
        "error_rate_percent": value,
        "threshold_percent": limit_percent,
        "total_traces": total,
        "failure_count": total - content["successful_traces"],
    }
    if rate is None:
        details["message"] = "there are no answers"
    met = _within(value, limit_percent)
    return Check("performance", "error_rate", met, rate, limit_percent / _PERCENT, details)


def _quality(name: str, stats: Mapping[str, Any], threshold: float) -> Check:
    average, count = stats.get("average"), stats.get("count", 0)
    details: dict[str, Any] = {"average_score": average, "threshold": threshold}
    if count:
        details["pass_rate"] = stats["reached"] / count
    details["trace_count"] = count
    if average is None:
        details["message"] = f"there are no scores of {name}"
    return Check("quality", name, passes(average, threshold), average, threshold, details)


def _tool_check(name: ToolCheck, stats: Mapping[str, Any]) -> Check:
    ratio = stats.get("average")
    details: dict[str, Any] = {"ratio": ratio, "trace_count": stats.get("count", 0)}
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


def check_alerts(rules: Iterable[AlertRule], content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return every rule with its value, and whether it is triggered, which one without data is not."""
    values = _values(content)
    return [
        {
            "metric": rule.metric,
            "operator": rule.operator,
            "threshold": rule.threshold,
            "value": (value := values.get(rule.metric)),
            "triggered": value is not None and _COMPARISONS[rule.operator](value, rule.threshold),
        }
        for rule in rules
    ]


def alert_text(alert: Mapping[str, Any]) -> str:
    """Return a checked alert in words: ``error_rate > 5: it is 7.5``."""
    condition = f"{alert['metric']} {alert['operator']} {alert['threshold']:g}"
    return f"{condition}: no data" if alert["value"] is None else f"{condition}: it is {alert['value']:.4g}"


def _values(content: Mapping[str, Any]) -> Mapping[str, float | None]:
    times, rate = content["duration_stats"], content["error_rate"]
    means = {name: stats["average"] for name, stats in content["evaluator_stats"].items()}
    return {
        **means,
        **{name: content[name] for name in ("pass_rate", "average_score", "total_traces", "passed_traces")},
        "error_rate": None if rate is None else _PERCENT * rate,
        "avg_score": content["average_score"],
        "min_score": min((mean for mean in means.values() if mean is not None), default=None),
        "failed_traces": content["judged_traces"] - content["passed_traces"],
        "absent_scores": sum(stats["absent"] for stats in content["evaluator_stats"].values()),
        "avg_response_time": times["average"],
        "max_response_time": times["max"],
        **{f"p{part}_response_time": times[f"p{part}"] for part in (50, 90, 95, 99)},
        "avg_tokens": content["token_stats"]["average"],
    }


Priority = Literal["high", "medium"]

_DROP = 0.05
_MOST_PERSONAS = 5
_MOST_METRICS = 3
_LONGEST_REASON = 160


def recommend(content: Mapping[str, Any], checks: Sequence[Check]) -> list[dict[str, Any]]:
    """Return what is worse than it should be, each with a step to take, for summary.json; the most urgent first."""
    analysis = content["analysis"]
    return [
        *_unmet(checks),
        *_low_rates(content),
        *_drops(analysis.get("comparison", {})),
        *_persona_rates(content),
        *_weak_metrics(content),
        *_most_frequent_cause(analysis.get("failures", {})),
    ]


def _item(priority: Priority, title: str, summary: str, action: str, **metrics: Any) -> dict[str, Any]:
    return {"title": title, "priority": priority, "summary": summary, "action": action, "metrics": metrics}


def _unmet(checks: Sequence[Check]) -> Iterator[dict[str, Any]]:
    for check in checks:
        if check.met is False and check.value is not None:
            label, (value, limit) = check_label(check), criterion_texts(check.criterion)
            numbers = {"criterion": check.name, "value": check.value, "threshold": check.threshold}
            yield _item("high", label, f"{value}, wanted: {limit}", f"Meet the condition on {label}", **numbers)


def _low_rates(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    rate, threshold = content["pass_rate"], content["threshold"]
    if passes(rate, threshold) is False:
        reasons = content["top_reasons"]
        why = f"; most frequent reason: {_short(reasons[0][0])}" if reasons else ""
        fact = f"{percent(rate)}, wanted: at least {percent(threshold)}{why}"
        yield _item("high", "Pass rate", fact, "Raise the pass rate", pass_rate=rate, threshold=threshold)


def _drops(comparison: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    rate = comparison.get("pass_rate")
    if rate and rate["delta"] < -_DROP:
        fact = f"{percent(rate['current'])}, {percent(rate['baseline'])} in the baseline"
        step = "Win back what was lost against the baseline"
        numbers = {"pass_rate": rate["current"], "baseline": rate["baseline"]}
        yield _item("high", "Pass rate against the baseline", fact, step, **numbers)
    metrics = comparison.get("evaluator_averages", {})
    for name, delta in sorted(metrics.items(), key=lambda item: item[1]["delta"]):
        if delta["delta"] < -_DROP:
            fact = f"{delta['current']:.3f}, {delta['baseline']:.3f} in the baseline"
            yield _item("high", f"{name} against the baseline", fact, f"Win back {name}", evaluator=name, **delta)


def _persona_rates(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    personas, threshold = content["persona_breakdown"], content["threshold"]
    rates = {name: stats["pass_rate"] for name, stats in personas.items() if len(personas) > 1}
    low = sorted((rate, name) for name, rate in rates.items() if passes(rate, threshold) is False)
    for rate, name in low[:_MOST_PERSONAS]:
        fact = f"{percent(rate)} of the answers pass, wanted: at least {percent(threshold)}"
        numbers = {"persona": name, "pass_rate": rate, "threshold": threshold}
        yield _item("medium", f"Persona {name}", fact, f"Serve {name} better", **numbers)


def _weak_metrics(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    metrics, threshold = content["evaluator_stats"], content["threshold"]
    means = {name: stats["average"] for name, stats in metrics.items()}
    weak = sorted((mean, name) for name, mean in means.items() if passes(mean, threshold) is False)
    for mean, name in weak[:_MOST_METRICS]:
        fact = f"mean {mean:.2f}, wanted: at least {threshold:.2f}"
        yield _item("medium", name, fact, f"Improve {name}", evaluator=name, average=mean, threshold=threshold)


def _most_frequent_cause(failures: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name, count in list(failures.get("categorized", {}).items())[:1]:
        label, examples = name.replace("_", " "), ", ".join(map(_short, failures["examples"][name]))
        fact = f"{count:,} of {failures['count']:,} failed answers, for example {examples}"
        yield _item("medium", f"Failures by {label}", fact, f"Fix failures by {label}", category=name, count=count)


def _short(text: str) -> str:
    line = " ".join(text[: 4 * _LONGEST_REASON].split())
    return line if len(line) <= _LONGEST_REASON else f"{line[:_LONGEST_REASON].rstrip()}…"
