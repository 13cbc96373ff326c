"""The tables of a suite's analysis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from agenteval.report.view import parts
from agenteval.report.view.analysis.wording import interval, share, time
from agenteval.report.view.parts import State, Table
from agenteval.report.view.run_page import MET, MET_STATES
from agenteval.report.view.view import NOTHING, number, signed
from agenteval.results.analysis.criteria import Check
from agenteval.results.analysis.formatting import check_label, criterion_texts
from agenteval.results.analysis.inference import Statistics
from agenteval.results.analysis.outliers import OutlierReport
from agenteval.results.analysis.personas import PersonaStats
from agenteval.results.analysis.result import EvaluationResult
from agenteval.results.analysis.summary import Counted
from agenteval.results.analysis.trend import Trend

_MOST_ROWS = 50
_MOST_OUTLIERS = 10
_QUANTILES = (
    ("shortest", 0.0),
    ("25 %", 0.25),
    ("half", 0.5),
    ("75 %", 0.75),
    ("95 %", 0.95),
    ("99 %", 0.99),
    ("longest", 1.0),
)
_TOTAL_NAMES = {
    "pass_rate": "Pass rate",
    "average_score": "Mean score",
    "total_traces": "Answers",
    "passed_traces": "Passed",
}


def criteria(checks: Sequence[Check]) -> Table:
    """Return every condition with its value and limit."""
    rows = ((MET[check.met], check_label(check), *criterion_texts(check.criterion)) for check in checks)
    columns = ("Result", "Condition", "#Value", "#Wanted")
    return parts.table("", columns, rows, _MOST_ROWS, (MET_STATES[check.met] for check in checks))


def metrics(result: EvaluationResult) -> Table:
    """Return every metric over all answers."""
    rows = (
        (
            name,
            number(stats.scores.average),
            number(stats.minimum),
            number(stats.maximum),
            share(stats.reached / stats.scores.count if stats.scores.count else None),
            f"{stats.scores.count:,}",
            f"{stats.absent:,}",
        )
        for name, stats in result.summary.metrics.items()
    )
    return _table(
        "Metrics", ("Metric", "#Mean", "#Lowest", "#Highest", "#Reach the threshold", "#Scores", "#Absent"), rows
    )


def personas(stats: Mapping[str, PersonaStats], focus: Iterable[str]) -> Table:
    """Return every persona; those in focus first, then those with the lowest pass rate."""
    first = {name: place for place, name in enumerate(focus)}
    ordered = sorted(stats, key=lambda name: (first.get(name, len(first)), _rate(stats[name]), name))
    rows = (
        (
            name,
            share(stats[name].pass_rate),
            number(stats[name].scores.average),
            time(stats[name].durations.average),
            f"{stats[name].count:,}",
            f"{stats[name].judged - stats[name].passed:,}",
        )
        for name in ordered
    )
    return _table("Personas", ("Persona", "#Pass rate", "#Mean score", "#Mean time", "#Answers", "#Failed"), rows)


def focus(result: EvaluationResult, persona: str) -> Table:
    """Return the metrics of one persona beside those of all answers."""
    own = result.personas[persona].metrics
    rows = (
        (name, number(own.get(name)), number(stats.scores.average)) for name, stats in result.summary.metrics.items()
    )
    return _table(f"{persona} in detail", ("Metric", f"#{persona}", "#Everybody"), rows)


def baseline(result: EvaluationResult) -> Table:
    """Return the numbers of this run beside those of the baseline."""
    return _table("Against the baseline", ("", "#Baseline", "#This run", "#Change"), _baseline(result))


def _baseline(result: EvaluationResult) -> Iterator[tuple[str, ...]]:
    if result.comparison is None:
        return
    for key, delta in result.comparison.totals.items():
        if key in {"total_traces", "passed_traces"}:
            change = f"{delta.change:+,.0f}" if delta.change else "±0"
            yield _TOTAL_NAMES[key], f"{delta.baseline:,.0f}", f"{delta.current:,.0f}", change
        elif key == "pass_rate":
            points = f"{100 * delta.change:+.1f} points" if delta.change else "±0"
            yield _TOTAL_NAMES[key], share(delta.baseline), share(delta.current), points
        else:
            yield _TOTAL_NAMES[key], number(delta.baseline), number(delta.current), signed(delta.change)
    for name, delta in result.comparison.metrics.items():
        yield name, number(delta.baseline), number(delta.current), signed(delta.change)


def trends(named: Mapping[str, Trend | None]) -> Table:
    """Return the trends of means over iterations."""
    rows = (
        (
            name,
            f"{found.direction} ({_slope(name, found.slope)})",
            *(_value(name, value) for value in (found.points[0][1], found.points[-1][1])),
            f"{len(found.points):,}",
        )
        for name, found in named.items()
        if found and len(found.points) > 1
    )
    return _table("From iteration to iteration", ("", "Trend", "#First", "#Last", "#Iterations"), rows)


def reasons(title: str, counted: Counted) -> Table:
    """Return reasons and how often each was given."""
    return _table(title, ("Reason", "#Times"), ((reason, f"{times:,}") for reason, times in counted))


def causes(result: EvaluationResult) -> Table:
    """Return the causes of failures, by category."""
    found = result.failures.causes if result.failures and result.failures.causes else {}
    rows = ((name.replace("_", " "), f"{cause.count:,}", ", ".join(cause.examples)) for name, cause in found.items())
    return _table("Causes of failures", ("Category", "#Answers", "For example"), rows)


def unusual_times(unusual: OutlierReport) -> Table:
    """Return unusual times, the most unusual first."""
    limits = unusual.fences
    usual = f"{time(max(0.0, limits.lower))} to {time(limits.upper)}" if limits else ""
    return _outliers("Unusual times", unusual, time, usual)


def unusual_scores(unusual: OutlierReport) -> Table:
    """Return unusual final scores, the most unusual first."""
    limits = unusual.fences
    usual = f"{number(max(0.0, limits.lower))} to {number(min(1.0, limits.upper))}" if limits else ""
    return _outliers("Unusual scores", unusual, number, usual)


def _outliers(title: str, unusual: OutlierReport, write: Callable[[float], str], usual: str) -> Table:
    rows = (
        (item.answer.name, item.answer.trace_id or NOTHING, write(item.value), usual) for item in unusual.outliers
    )
    return _table(title, ("Answer", "Trace", "#Value", "#Usual"), rows, _MOST_OUTLIERS)


def distribution(result: EvaluationResult) -> Table:
    """Return quantiles of the times."""
    times = result.summary.times
    rows = ((name, time(times.quantile(part))) for name, part in _QUANTILES) if times.ordered else ()
    return _table("Time for an answer", ("Answers that took at most so long", "#Time"), rows)


def intervals(result: EvaluationResult, statistics: Statistics) -> Table:
    """Return the confidence intervals of pass rate, mean score and metrics."""
    totals = result.summary.totals
    rows = [
        ("Pass rate", share(totals.pass_rate), interval(statistics.pass_rate, share), f"{totals.judged:,}"),
        ("Mean score", number(totals.scores.average), interval(statistics.score, number), f"{totals.scores.count:,}"),
    ]
    for name, stats in result.summary.metrics.items():
        bounds = interval(statistics.metrics.get(name), number)
        rows.append((name, number(stats.scores.average), bounds, f"{stats.scores.count:,}"))
    title = f"{statistics.confidence:.0%} confidence intervals"
    return _table(title, ("", "#Value", "#Interval", "#Answers"), rows)


def tests(statistics: Statistics) -> Table:
    """Return every test; significant ones first."""
    ordered = sorted(statistics.tests, key=lambda test: (not test.significant, test.p, test.subject, test.measure))
    rows = (
        (
            "significant" if test.significant else "not significant",
            f"{test.subject} against {test.against}",
            test.measure,
            signed(test.difference),
            "<0.0001" if test.p < 0.0001 else f"{test.p:.4f}",
        )
        for test in ordered
    )
    title = f"Differences, tested at {statistics.significance:g} with Holm's correction"
    states: Iterable[State] = (
        "bad" if test.significant and test.difference < 0 else "good" if test.significant else "neutral"
        for test in ordered
    )
    return parts.table(title, ("Result", "Who", "Measure", "#Difference", "#p"), rows, _MOST_ROWS, states)


def _table(title: str, columns: Iterable[str], rows: Iterable[tuple[str, ...]], most: int = _MOST_ROWS) -> Table:
    return parts.table(title, columns, rows, most)


def _rate(stats: PersonaStats) -> float:
    return 2.0 if stats.pass_rate is None else stats.pass_rate


def _slope(name: str, slope: float) -> str:
    return f"{slope:+.0f} ms per iteration" if name == "Time" else f"{slope:+.3f} per iteration"


def _value(name: str, value: float) -> str:
    return time(value) if name == "Time" else number(value)
