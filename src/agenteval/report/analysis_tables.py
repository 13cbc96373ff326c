"""Tables of a suite's analysis. All but the first read the content of summary.json."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from agenteval.core.records import replace
from agenteval.report.html import MET, MET_STATES
from agenteval.report.parts import State, Table, table
from agenteval.report.words import NOTHING, number, signed
from agenteval.results.analysis.criteria import Check, check_label
from agenteval.results.verdict import criterion_texts, percent, seconds

_MOST_ROWS = 50
_MOST_OUTLIERS = 10
_TOTALS = {
    "pass_rate": "Pass rate",
    "average_score": "Mean score",
    "total_traces": "Answers",
    "passed_traces": "Passed",
}
_TIMES = ("p50", "p90", "p95", "p99", "max")
#: The unit of each measure, and its name in the tables of trends and outliers.
MEASURE_NAMES = {"final_score": "score", "duration_ms": "time"}


def share(value: float | None) -> str:
    """Return a share as a percentage with one decimal."""
    return NOTHING if value is None else percent(value)


def time(milliseconds: float | None) -> str:
    """Return a time in seconds or milliseconds."""
    return NOTHING if milliseconds is None else seconds(milliseconds)


def written(measure: str, value: float | None) -> str:
    """Return a value of ``final_score`` or ``duration_ms``."""
    return time(value) if measure == "duration_ms" else number(value)


def criteria(checks: Sequence[Check]) -> Table:
    """Return every condition with its value and limit."""
    rows = ((MET[check.met], check_label(check), *criterion_texts(check.criterion)) for check in checks)
    columns = ("Result", "Condition", "#Value", "#Wanted")
    return table("", columns, rows, _MOST_ROWS, (MET_STATES[check.met] for check in checks))


def metrics(content: Mapping[str, Any]) -> Table:
    """Return every metric over all answers."""
    rows = (
        (
            name,
            *(number(stats[key]) for key in ("average", "min", "max")),
            share(stats["reached"] / stats["count"] if stats["count"] else None),
            f"{stats['count']:,}",
            f"{stats['absent']:,}",
        )
        for name, stats in content["evaluator_stats"].items()
    )
    columns = ("Metric", "#Mean", "#Lowest", "#Highest", "#Reach the threshold", "#Scores", "#Absent")
    return table("Metrics", columns, rows, _MOST_ROWS)


def personas(content: Mapping[str, Any], focus: Sequence[str]) -> Iterator[Table]:
    """Yield all personas, those in focus first, then the lowest pass rate; then the metrics of each one in focus."""
    found = content["persona_breakdown"]
    first = {name: place for place, name in enumerate(focus)}
    ordered = sorted(
        found,
        key=lambda name: (first.get(name, len(first)), (rate := found[name]["pass_rate"]) is None, rate, name),
    )
    rows = (
        (
            name,
            share(found[name]["pass_rate"]),
            number(found[name]["average_score"]),
            time(found[name]["average_duration_ms"]),
            f"{found[name]['count']:,}",
            f"{found[name]['failed_traces']:,}",
        )
        for name in ordered
    )
    columns = ("Persona", "#Pass rate", "#Mean score", "#Mean time", "#Answers", "#Failed")
    yield table("Personas", columns, rows, _MOST_ROWS)
    for name in filter(found.__contains__, focus):
        own = content["analysis"]["persona"]["breakdown"][name]["evaluator_averages"]
        details = (
            (metric, number(own.get(metric)), number(stats["average"]))
            for metric, stats in content["evaluator_stats"].items()
        )
        yield table(f"{name} in detail", ("Metric", f"#{name}", "#Everybody"), details, _MOST_ROWS)


def baseline(comparison: Mapping[str, Any]) -> Table:
    """Return the numbers of this run beside those of the baseline."""
    rows = [(label, *_change(key, comparison[key])) for key, label in _TOTALS.items() if key in comparison]
    rows += [(name, *_change("", delta)) for name, delta in comparison.get("evaluator_averages", {}).items()]
    return table("Against the baseline", ("", "#Baseline", "#This run", "#Change"), rows, _MOST_ROWS)


def _change(key: str, delta: Mapping[str, float]) -> tuple[str, str, str]:
    before, now, change = delta["baseline"], delta["current"], delta["delta"]
    if key == "pass_rate":
        return share(before), share(now), f"{100 * change:+.1f} points".replace("-", "−") if change else "±0"
    if key in {"total_traces", "passed_traces"}:
        return f"{before:,.0f}", f"{now:,.0f}", f"{change:+,.0f}".replace("-", "−") if change else "±0"
    return number(before), number(now), signed(change)


def trends(found: Mapping[str, Any]) -> Table:
    """Return the trends of means over iterations."""
    rows = (
        (
            MEASURE_NAMES[measure].capitalize(),
            f"{trend['trend']} ({_slope(measure, trend['slope'])} per iteration)",
            written(measure, trend["points"][0][1]),
            written(measure, trend["points"][-1][1]),
            f"{len(trend['points']):,}",
        )
        for measure, trend in found.items()
        if len(trend["points"]) > 1
    )
    columns = ("", "Trend", "#First", "#Last", "#Iterations")
    return table("From iteration to iteration", columns, rows, _MOST_ROWS)


def _slope(measure: str, slope: float) -> str:
    return f"{slope:+.0f} ms" if measure == "duration_ms" else f"{slope:+.3f}"


def reasons(title: str, counted: Iterable[Sequence[Any]]) -> Table:
    """Return reasons and how often each was given."""
    return table(title, ("Reason", "#Times"), ((reason, f"{times:,}") for reason, times in counted), _MOST_ROWS)


def causes(failures: Mapping[str, Any]) -> Table:
    """Return the causes of failures, by category."""
    rows = (
        (name.replace("_", " "), f"{count:,}", ", ".join(failures["examples"][name]))
        for name, count in failures.get("categorized", {}).items()
    )
    return table("Causes of failures", ("Category", "#Answers", "For example"), rows, _MOST_ROWS)


def outliers(performance: Mapping[str, Any]) -> Iterator[Table]:
    """Yield the unusual times and the unusual scores, the most unusual first."""
    for measure, found in performance.get("outliers", {}).items():
        most = 1.0 if measure == "final_score" else float("inf")
        rows = (
            (
                item["name"],
                item["trace_id"] if item["trace_id"] != item["name"] else NOTHING,
                written(measure, item["value"]),
                f"{written(measure, max(0.0, item['thresholds']['lower']))} to "
                f"{written(measure, min(most, item['thresholds']['upper']))}",
            )
            for item in found[:_MOST_OUTLIERS]
        )
        shown = table(f"Unusual {MEASURE_NAMES[measure]}s", ("Answer", "Trace", "#Value", "#Usual"), rows, _MOST_ROWS)
        yield replace(shown, hidden=performance["outlier_effect"][measure]["count"] - len(shown.rows))


def distribution(times: Mapping[str, Any]) -> Table:
    """Return quantiles of the times."""
    rows = (
        ("all" if name == "max" else f"{name[1:]} %", time(times[name])) for name in _TIMES if times[name] is not None
    )
    return table("Time for an answer", ("Answers that took at most this long", "#Time"), rows, _MOST_ROWS)


def intervals(content: Mapping[str, Any]) -> Table:
    """Return the confidence intervals of pass rate, mean score and metrics."""
    statistics, stats = content["analysis"]["statistics"], content["evaluator_stats"]
    found, scores = statistics["intervals"], content["score_stats"]
    rows = [
        ("Pass rate", share(content["pass_rate"]), interval(found["pass_rate"], share), content["judged_traces"]),
        ("Mean score", number(scores["average"]), interval(found["average_score"], number), scores["count"]),
        *(
            (name, number(stats[name]["average"]), interval(bounds, number), stats[name]["count"])
            for name, bounds in found["evaluators"].items()
        ),
    ]
    title = f"{100 * statistics['confidence']:.0f} % confidence intervals"
    texts = ((*cells, f"{amount:,}") for *cells, amount in rows)
    return table(title, ("", "#Value", "#Interval", "#Answers"), texts, _MOST_ROWS)


def interval(bounds: Sequence[float] | None, write: Callable[[float], str]) -> str:
    """Return an interval in words: ``0.71 to 0.84``."""
    return NOTHING if bounds is None else f"{write(bounds[0])} to {write(bounds[1])}"


def tests(statistics: Mapping[str, Any]) -> Table:
    """Return every test; significant ones first."""
    ordered = sorted(
        statistics["tests"], key=lambda test: (not test["significant"], test["p"], test["subject"], test["measure"])
    )
    rows = (
        (
            "significant" if test["significant"] else "not significant",
            f"{test['subject']} against {test['against']}",
            test["measure"],
            signed(test["difference"]),
            "<0.0001" if test["p"] < 0.0001 else f"{test['p']:.4f}",
        )
        for test in ordered
    )
    states: Iterable[State] = (
        "neutral" if not test["significant"] else "bad" if test["difference"] < 0 else "good" for test in ordered
    )
    title = f"Differences, tested at {statistics['significance']:g} with Holm's correction"
    return table(title, ("Result", "Who", "Measure", "#Difference", "#p"), rows, _MOST_ROWS, states)
