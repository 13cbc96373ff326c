"""The tables of an evaluation report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from agenteval.report.evaluation.parts import Column, State, Table
from agenteval.report.evaluation.wording import interval, share, time
from agenteval.report.view.view import NOTHING, number, signed
from agenteval.results.analysis.criteria import Check
from agenteval.results.analysis.formatting import check_label, check_texts
from agenteval.results.analysis.inference import Statistics
from agenteval.results.analysis.outliers import OutlierReport
from agenteval.results.analysis.personas import PersonaStats
from agenteval.results.analysis.result import EvaluationResult
from agenteval.results.analysis.summary import Counted
from agenteval.results.analysis.trend import Trend

_MOST_ROWS = 50
_MOST_OUTLIERS = 10
_MET = {True: "met", False: "not met", None: "no data"}
_STATES: Mapping[bool | None, State] = {True: "good", False: "bad", None: "neutral"}
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

Rows = Iterable[tuple[str, ...]]


def criteria(checks: Sequence[Check]) -> Table:
    """Every condition with its value and limit."""
    rows = ((_MET[check.met], check_label(check), *check_texts(check)) for check in checks)
    found = table("", ("Result", "Condition", "#Value", "#Wanted"), rows)
    return replace(found, states=tuple(_STATES[check.met] for check in checks))


def metrics(result: EvaluationResult) -> Table:
    """Every metric over all answers."""
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
    return table(
        "Metrics", ("Metric", "#Mean", "#Lowest", "#Highest", "#Reach the threshold", "#Scores", "#Absent"), rows
    )


def personas(stats: Mapping[str, PersonaStats], focus: Iterable[str]) -> Table:
    """Every persona; those in focus first, then those with the lowest pass rate."""
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
    return table("Personas", ("Persona", "#Pass rate", "#Mean score", "#Mean time", "#Answers", "#Failed"), rows)


def focus(result: EvaluationResult, persona: str) -> Table:
    """A persona looked at more closely: its metrics beside those of everybody."""
    own = result.personas[persona].metrics
    rows = (
        (name, number(own.get(name)), number(stats.scores.average)) for name, stats in result.summary.metrics.items()
    )
    return table(f"{persona} in detail", ("Metric", f"#{persona}", "#Everybody"), rows)


def baseline(result: EvaluationResult) -> Table:
    """This run against the baseline."""
    return table("Against the baseline", ("", "#Baseline", "#This run", "#Change"), _baseline(result))


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
    """Where means move from iteration to iteration."""
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
    return table("From iteration to iteration", ("", "Trend", "#First", "#Last", "#Iterations"), rows)


def reasons(title: str, counted: Counted) -> Table:
    """Reasons and how often they were given."""
    return table(title, ("Reason", "#Times"), ((reason, f"{times:,}") for reason, times in counted))


def causes(result: EvaluationResult) -> Table:
    """What failures have to do with."""
    found = result.failures.causes if result.failures and result.failures.causes else {}
    rows = ((name.replace("_", " "), f"{cause.count:,}", ", ".join(cause.examples)) for name, cause in found.items())
    return table("What failures have to do with", ("Category", "#Answers", "For example"), rows)


def unusual_times(unusual: OutlierReport) -> Table:
    """Unusual times, the farthest outside first."""
    limits = unusual.fences
    usual = f"{time(max(0.0, limits.lower))} to {time(limits.upper)}" if limits else ""
    return _outliers("Unusual times", unusual, time, usual)


def unusual_scores(unusual: OutlierReport) -> Table:
    """Unusual final scores, the farthest outside first."""
    limits = unusual.fences
    usual = f"{number(max(0.0, limits.lower))} to {number(min(1.0, limits.upper))}" if limits else ""
    return _outliers("Unusual scores", unusual, number, usual)


def _outliers(title: str, unusual: OutlierReport, write: Callable[[float], str], usual: str) -> Table:
    rows = (
        (item.answer.name, item.answer.trace_id or NOTHING, write(item.value), usual) for item in unusual.outliers
    )
    return table(title, ("Answer", "Trace", "#Value", "#Usual"), rows, _MOST_OUTLIERS)


def distribution(result: EvaluationResult) -> Table:
    """Quantiles of the times, and the spread of scores."""
    times = result.summary.times
    rows = ((name, time(times.quantile(part))) for name, part in _QUANTILES) if times.ordered else ()
    return table("Time for an answer", ("Answers that took at most so long", "#Time"), rows)


def intervals(result: EvaluationResult, statistics: Statistics) -> Table:
    """Confidence intervals of everything."""
    totals = result.summary.totals
    rows = [
        ("Pass rate", share(totals.pass_rate), interval(statistics.pass_rate, share), f"{totals.judged:,}"),
        ("Mean score", number(totals.scores.average), interval(statistics.score, number), f"{totals.scores.count:,}"),
    ]
    for name, stats in result.summary.metrics.items():
        bounds = interval(statistics.metrics.get(name), number)
        rows.append((name, number(stats.scores.average), bounds, f"{stats.scores.count:,}"))
    title = f"{statistics.confidence:.0%} confidence intervals"
    return table(title, ("", "#Value", "#Interval", "#Answers"), rows)


def tests(statistics: Statistics) -> Table:
    """Every test; those that stand first."""
    ordered = sorted(statistics.tests, key=lambda test: (not test.significant, test.p, test.subject, test.measure))
    rows = (
        (
            "significant" if test.significant else "may be chance",
            f"{test.subject} against {test.against}",
            test.measure,
            signed(test.difference),
            "<0.0001" if test.p < 0.0001 else f"{test.p:.4f}",
        )
        for test in ordered
    )
    title = f"Differences, tested at {statistics.significance:g} with Holm's correction"
    found = table(title, ("Result", "Who", "Measure", "#Difference", "#p"), rows)
    return replace(
        found,
        states=tuple(
            "bad" if test.significant and test.difference < 0 else "good" if test.significant else "neutral"
            for test in ordered
        ),
    )


def table(title: str, columns: Iterable[str], rows: Rows, most: int = _MOST_ROWS) -> Table:
    """A table that shows at most so many rows; a column that begins with ``#`` holds numbers."""
    everything = tuple(rows)
    heads = tuple(Column(name.removeprefix("#"), name.startswith("#")) for name in columns)
    return Table(title, heads, everything[:most], max(0, len(everything) - most))


def _rate(stats: PersonaStats) -> float:
    return 2.0 if stats.pass_rate is None else stats.pass_rate


def _slope(name: str, slope: float) -> str:
    return f"{slope:+.0f} ms per iteration" if name == "Time" else f"{slope:+.3f} per iteration"


def _value(name: str, value: float) -> str:
    return time(value) if name == "Time" else number(value)
