"""Tables of a whole run's analysis, their words, and the answers that they list."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agenteval.report.view import parts
from agenteval.report.view.parts import Item, State, Table
from agenteval.report.view.run_page import MET, MET_STATES
from agenteval.report.view.view import NOTHING, count, number, signed
from agenteval.results.analysis.answers import EvaluatedAnswer, OutlierReport
from agenteval.results.analysis.baseline import Interval, Statistics
from agenteval.results.analysis.criteria import Check, Trend
from agenteval.results.analysis.evaluate import EvaluationResult
from agenteval.results.analysis.formatting import check_label, criterion_texts, percent, seconds
from agenteval.results.analysis.summary import Counted, PersonaStats, persona_of
from agenteval.suite.evaluation import Section, Tone

SECTION_TITLES: Mapping[Section, str] = {
    "executive_summary": "Summary",
    "key_metrics": "Key numbers",
    "detailed_results": "Results in detail",
    "statistical_analysis": "Statistics",
    "failure_cases": "Failures",
    "success_examples": "Good answers",
    "recommendations": "Recommendations",
    "action_items": "Next steps",
}

#: The order of the sections in each tone.
ORDER: Mapping[Tone, tuple[Section, ...]] = {
    "technical": (
        "executive_summary",
        "key_metrics",
        "statistical_analysis",
        "detailed_results",
        "failure_cases",
        "success_examples",
        "recommendations",
        "action_items",
    ),
    "executive": (
        "executive_summary",
        "recommendations",
        "action_items",
        "key_metrics",
        "failure_cases",
        "success_examples",
        "detailed_results",
        "statistical_analysis",
    ),
    "balanced": (
        "executive_summary",
        "key_metrics",
        "recommendations",
        "action_items",
        "detailed_results",
        "failure_cases",
        "success_examples",
        "statistical_analysis",
    ),
}


def verdict(result: EvaluationResult) -> str:
    """Return the result of the conditions in a few words."""
    checks = result.checks
    if not checks:
        return "no conditions set"
    unmet = sum(check.met is False for check in checks)
    unknown = sum(check.met is None for check in checks)
    if unmet:
        return f"{unmet} of {count(len(checks), 'condition')} not met"
    if unknown:
        return f"{unknown} of {count(len(checks), 'condition')} could not be checked"
    return "all conditions met"


def headlines(result: EvaluationResult, tone: Tone) -> Iterator[str]:
    """Yield the paragraphs of the summary."""
    yield _HEADLINES[tone](result)
    if result.comparison and (rate := result.comparison.totals.get("pass_rate")):
        before, now = percent(rate.baseline), percent(rate.current)
        moved = "unchanged since" if rate.change == 0 else "up from" if rate.change > 0 else "down from"
        if tone == "technical":
            yield f"Against the baseline: pass_rate {before} → {now} ({signed(rate.change)})."
        elif rate.change == 0:
            yield f"The pass rate is {moved} the baseline: {now}."
        else:
            yield f"The pass rate is {moved} {before} in the baseline to {now}."
    if result.summary.totals.judged < result.summary.totals.answers:
        unjudged = result.summary.totals.answers - result.summary.totals.judged
        yield f"{count(unjudged, 'answer')} could not be scored and neither passed nor failed."


def interval(bounds: Interval | None, write: Callable[[float], str]) -> str:
    """Return an interval in words: ``0.71 to 0.84``."""
    return NOTHING if bounds is None else f"{write(bounds[0])} to {write(bounds[1])}"


def share(value: float | None) -> str:
    """Return a share as a percentage with one decimal."""
    return NOTHING if value is None else percent(value)


def time(milliseconds: float | None) -> str:
    """Return a time in seconds or milliseconds."""
    return NOTHING if milliseconds is None else seconds(milliseconds)


def _technical(result: EvaluationResult) -> str:
    totals, aggregate = result.summary.totals, result.aggregate
    spread = "" if totals.scores.deviation is None else f" (sd {totals.scores.deviation:.3f})"
    return (
        f"{totals.passed:,}/{totals.judged:,} answers passed, pass_rate {_plain(totals.pass_rate)}; "
        f"mean final_score {_plain(totals.scores.average)}{spread}, threshold {aggregate.threshold:g}, "
        f"{aggregate.method} of {count(len(result.summary.metrics), 'metric')}."
    )


def _executive(result: EvaluationResult) -> str:
    totals = result.summary.totals
    if totals.pass_rate is None:
        return "No answer could be judged: the run does not show how good the agent is."
    text = f"{percent(totals.pass_rate)} of the answers are good enough ({totals.passed:,} of {totals.judged:,})."
    met = {
        True: "All conditions are met.",
        False: f"{verdict(result)}.",
        None: "",
    }[result.success]
    return f"{text} {met}".rstrip()


def _balanced(result: EvaluationResult) -> str:
    totals = result.summary.totals
    if totals.pass_rate is None:
        return "No answer could be judged."
    return (
        f"{totals.passed:,} of {count(totals.judged, 'answer')} passed ({percent(totals.pass_rate)}). "
        f"The mean score is {number(totals.scores.average)}, {number(result.aggregate.threshold)} is needed to pass."
    )


_HEADLINES: Mapping[Tone, Callable[[EvaluationResult], str]] = {
    "technical": _technical,
    "executive": _executive,
    "balanced": _balanced,
}


def _plain(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3f}"


AnswerStatus = Literal["passed", "failed", "skipped"]

#: Maximum number of answers in the table of the HTML report; browsers become slow with more.
MOST_ANSWERS = 2_000
_RANKS: dict[AnswerStatus, int] = {"failed": 0, "skipped": 1, "passed": 2}


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One answer in the table that readers filter and sort."""

    name: str
    persona: str
    iteration: int
    score: float | None
    duration_ms: float | None
    status: AnswerStatus
    reasons: tuple[str, ...]


def example(answer: EvaluatedAnswer, state: State) -> Item:
    """Return one answer with its score and the reasons for it."""
    details = (persona_of(answer), f"iteration {answer.order}", time(answer.duration_ms), answer.trace_id)
    facts = " · ".join(text for text in details if text)
    return Item(answer.name, number(answer.final_score), state, (facts, *_reasons(answer)))


def worst_first(answer: EvaluatedAnswer) -> tuple[Any, ...]:
    """Return a sort key, unique to an answer: answers without a score first, then the lowest score."""
    score = -1.0 if answer.final_score is None else answer.final_score
    return score, answer.name, answer.order, answer.trace_id, answer.case_id


def best_first(answer: EvaluatedAnswer) -> tuple[Any, ...]:
    """Return a sort key for the highest score first."""
    score, *rest = worst_first(answer)
    return -score, *rest


def answer_rows(answers: Iterable[EvaluatedAnswer]) -> tuple[AnswerRow, ...]:
    """Return the rows of the table: failed answers first, then those without a score, the worst of each first."""
    ordered = heapq.nsmallest(
        MOST_ANSWERS, answers, key=lambda answer: (_RANKS[_status(answer)], *worst_first(answer))
    )
    return tuple(
        AnswerRow(
            name=answer.name,
            persona=persona_of(answer),
            iteration=answer.order,
            score=answer.final_score,
            duration_ms=answer.duration_ms,
            status=_status(answer),
            reasons=tuple(_reasons(answer)),
        )
        for answer in ordered
    )


def _reasons(answer: EvaluatedAnswer) -> Iterator[str]:
    if not answer.success:
        yield "the agent gave no answer, or reported a failure"
    for name, reason in answer.reasons.items():
        score = answer.scores.get(name)
        yield f"{name}: {reason}" if score is None else f"{name} {number(score)}: {reason}"


def _status(answer: EvaluatedAnswer) -> AnswerStatus:
    if answer.passed is None:
        return "skipped"
    return "passed" if answer.passed else "failed"


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
