"""Reads the figures of FluxLoop's summary.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agenteval.results.case import Criterion
from agenteval.results.importers.fluxloop.shape import EvaluationSummary
from agenteval.results.importers.values import finite
from agenteval.results.summary import MetricSummary, RunUsage, Summary

_SECTIONS: Mapping[str, str] = {"performance": "", "quality": "quality.", "functionality": "tool_calling."}
# The keys of value and threshold of each criterion, and the divisor for seconds and 0..1.
_VALUES: Mapping[str, float] = {
    "average_ms": 1000,
    "max_ms": 1000,
    "error_rate_percent": 100,
    "average_score": 1,
    "ratio": 1,
}
_THRESHOLDS: Mapping[str, float] = {"threshold_ms": 1000, "threshold_percent": 100, "threshold": 1}
# These criteria require all calls; the file does not record that.
_ALL = ("all_traces_successful", "tool_calling.")


def share(number: float | None) -> float | None:
    """Return a number from 0 to 1; ``None`` for everything else."""
    return number if number is not None and 0 <= number <= 1 else None


def numbers_of(summary: EvaluationSummary) -> Summary:
    """Return the figures of the run, for evaluations without traces."""
    total = summary.total_traces or 0
    judged = total if summary.judged_traces is None else min(summary.judged_traces, total)
    passed = min(summary.passed_traces or 0, judged)
    return Summary(
        cases=total,
        passed=passed,
        failed=judged - passed,
        errors=0,
        skipped=total - judged,
        pass_rate=share(summary.pass_rate),
        score=share(summary.average_score),
        metrics={
            name: MetricSummary(n=stats.count or 0, mean=share(stats.average), pass_rate=None)
            for name, stats in summary.evaluator_stats.items()
        },
        usage=RunUsage(),
    )


def criteria_of(sections: Mapping[str, Any]) -> Iterator[Criterion]:
    """Return the success criteria; times are in seconds, rates are 0..1."""
    for section, prefix in _SECTIONS.items():
        checks = sections.get(section)
        for key, details in checks.items() if isinstance(checks, dict) else ():
            if isinstance(details, dict):
                yield _criterion(f"{prefix}{key}", details)


def _criterion(name: str, details: Mapping[str, Any]) -> Criterion:
    met = details.get("met")
    value, threshold = _first(details, _VALUES), _first(details, _THRESHOLDS)
    if name.startswith(_ALL):
        threshold = 1.0
        value = _successful(details) if value is None else value
    return Criterion(name=name, met=met if isinstance(met, bool) else None, value=value, threshold=threshold)


def _successful(details: Mapping[str, Any]) -> float | None:
    part, total = finite(details.get("successful_traces")), finite(details.get("total_traces"))
    return share(part / total) if part is not None and total else None


def _first(details: Mapping[str, Any], units: Mapping[str, float]) -> float | None:
    found = ((finite(details.get(key)), unit) for key, unit in units.items())
    return next((number / unit for number, unit in found if number is not None), None)
