"""What alerts of a suite can watch, and what is wrong with one that cannot be."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping

from agenteval.suite.evaluation import AlertRule

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
