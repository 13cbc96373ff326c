"""The report on the analysis of one suite: sections chosen by style and settings, in the order of the tone."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from agenteval.report.view import analysis_tables
from agenteval.report.view.analysis_tables import (
    ORDER,
    SECTION_TITLES,
    AnswerRow,
    answer_rows,
    best_first,
    example,
    headlines,
    interval,
    share,
    time,
    verdict,
    worst_first,
)
from agenteval.report.view.parts import (
    Bar,
    Bars,
    Chart,
    Figure,
    Item,
    Mark,
    Part,
    State,
    Table,
    listed,
    score_histogram,
    time_histogram,
)
from agenteval.report.view.run_page import MET_STATES
from agenteval.report.view.view import NOTHING, count, number
from agenteval.results.analysis.answers import EvaluatedAnswer, OutlierReport
from agenteval.results.analysis.evaluate import AnalysedSuite, EvaluationResult
from agenteval.results.analysis.formatting import percent
from agenteval.results.analysis.summary import failed, passed
from agenteval.suite.evaluation import EvaluationReport, Section, Style, Tone

# The labels of each tone, the most important number first; a tone omits the numbers that are not in its list.
_LABELS: Mapping[Tone, Mapping[str, str]] = {
    "technical": {
        "score": "Mean final_score",
        "pass_rate": "pass_rate",
        "p50": "p50 duration",
        "p95": "p95 duration",
        "p99": "p99 duration",
        "errors": "error_rate",
        "tokens": "Mean tokens",
        "absent": "Absent scores",
    },
    "executive": {
        "pass_rate": "Good answers",
        "conditions": "Conditions met",
        "persona": "Served worst",
        "average": "Usual wait",
        "errors": "No answer or failed",
    },
    "balanced": {
        "pass_rate": "Pass rate",
        "score": "Mean score",
        "conditions": "Conditions met",
        "average": "Mean time",
        "p95": "95 % are faster than",
        "errors": "Without success",
        "absent": "Absent scores",
    },
}


def figures(result: EvaluationResult, tone: Tone) -> tuple[Figure, ...]:
    """Return the prominent numbers, the most important of the tone first; unknown numbers are omitted."""
    return tuple(_figures(result, tone))


def _figures(result: EvaluationResult, tone: Tone) -> Iterator[Figure]:
    for kind, label in _LABELS[tone].items():
        figure = _FIGURES[kind](result)
        if figure is not None:
            yield replace(figure, label=label)


def _pass_rate(result: EvaluationResult) -> Figure:
    totals = result.summary.totals
    bounds = result.statistics.pass_rate if result.statistics else None
    note = f"{totals.passed:,} of {totals.judged:,}"
    return Figure("", share(totals.pass_rate), f"{note}, {interval(bounds, percent)}" if bounds else note)


def _score(result: EvaluationResult) -> Figure:
    scores = result.summary.totals.scores
    if scores.average is None:
        return Figure("", NOTHING)
    bounds = result.statistics.score if result.statistics else None
    note = f"needed {result.aggregate.threshold:g}"
    state: State = "good" if scores.average >= result.aggregate.threshold else "bad"
    return Figure("", f"{scores.average:.3f}", f"{note}, {interval(bounds, number)}" if bounds else note, state)


def _conditions(result: EvaluationResult) -> Figure | None:
    if not result.checks:
        return None
    met = sum(check.met is True for check in result.checks)
    return Figure("", f"{met} of {len(result.checks)}", verdict(result), MET_STATES[result.success])


def _persona(result: EvaluationResult) -> Figure | None:
    rates = [(stats.pass_rate, name) for name, stats in result.personas.items() if stats.pass_rate is not None]
    if len(rates) < 2:
        return None
    rate, name = min(rates)
    return Figure("", name, f"{percent(rate)} good answers")


def _time(result: EvaluationResult, milliseconds: float | None) -> Figure | None:
    times = result.summary.times
    return Figure("", time(milliseconds), f"longest {time(times.maximum)}") if times.ordered else None


def _quantile(result: EvaluationResult, part: float) -> Figure | None:
    return _time(result, result.summary.times.quantile(part)) if result.summary.times.ordered else None


def _errors(result: EvaluationResult) -> Figure:
    totals = result.summary.totals
    failed = totals.answers - totals.successful
    return Figure("", share(totals.error_rate), f"{failed:,} of {totals.answers:,}", "bad" if failed else "good")


def _tokens(result: EvaluationResult) -> Figure | None:
    tokens = result.summary.tokens
    return Figure("", f"{tokens.mean:,.0f}", f"of {count(tokens.count, 'answer')}") if tokens.count else None


def _absent(result: EvaluationResult) -> Figure | None:
    absent = sum(stats.absent for stats in result.summary.metrics.values())
    reason = result.summary.absent_reasons[0][0] if result.summary.absent_reasons else ""
    return Figure("", f"{absent:,}", reason) if absent else None


_FIGURES: Mapping[str, Callable[[EvaluationResult], Figure | None]] = {
    "pass_rate": _pass_rate,
    "score": _score,
    "conditions": _conditions,
    "persona": _persona,
    "average": lambda result: _time(result, result.summary.times.averaged.average),
    "p50": lambda result: _quantile(result, 0.5),
    "p95": lambda result: _quantile(result, 0.95),
    "p99": lambda result: _quantile(result, 0.99),
    "errors": _errors,
    "tokens": _tokens,
    "absent": _absent,
}

_MOST_BARS = 20
_MOST_NOTICES = 50
_MOST_GOOD = 5
_MOST_EXAMPLES: Mapping[Style, int] = {"quick": 5, "standard": 10, "detailed": 50}
_STYLES: Mapping[Style, frozenset[Section]] = {
    "quick": frozenset({"executive_summary", "key_metrics"}),
    "standard": frozenset(
        {"executive_summary", "key_metrics", "detailed_results", "failure_cases", "recommendations", "action_items"}
    ),
    "detailed": frozenset(SECTION_TITLES),
}
_PRIORITIES: Mapping[str, State] = {"high": "bad", "medium": "neutral", "low": "good"}


@dataclass(frozen=True, slots=True)
class AnalysisPage:
    """The whole report.

    Attributes:
        success: whether the conditions are met; ``None`` without conditions.
        created: date and time in UTC.
        notices: warnings that do not fail the run.
        parts: the sections; ``as_tables`` is false if the settings ask for lists instead of tables.
        answers: failed answers first, the lowest score first; ``hidden_answers`` counts the omitted ones.
        interactive: whether readers can filter and sort.
    """

    title: str
    count: int
    created: str
    goal: str
    success: bool | None
    verdict: str
    notices: tuple[str, ...]
    parts: tuple[Part, ...]
    as_tables: bool
    answers: tuple[AnswerRow, ...] = ()
    hidden_answers: int = 0
    interactive: bool = False

    @property
    def state(self) -> State:
        """The state of the verdict."""
        return MET_STATES[self.success]

    @property
    def warnings(self) -> Part:
        """The notices as a part of a page."""
        return listed("warnings", "Warnings", self.notices, _MOST_NOTICES, warns=True)

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """Labels and values for the head."""
        return ("Answers", f"{self.count:,}"), ("Made", self.created)


@dataclass(frozen=True, slots=True)
class _Source:
    result: EvaluationResult
    answers: Sequence[EvaluatedAnswer]
    report: EvaluationReport


def make_analysis_page(suite: AnalysedSuite, created: datetime, notices: Sequence[str] = ()) -> AnalysisPage:
    """Return the report according to its settings.

    Args:
        created: the current time in UTC.
    """
    report = suite.report or EvaluationReport()
    result, source = suite.result, _Source(suite.result, suite.answers, report)
    chosen = [section for section in ORDER[report.tone] if _wanted(section, report, result)]
    parts = [_part(section, source) for section in chosen]
    if result.checks:
        place = 1 if chosen and chosen[0] == "executive_summary" else 0
        parts.insert(place, Part("conditions", "Conditions", tables=(analysis_tables.criteria(result.checks),)))
    with_answers = report.tables and "detailed_results" in chosen
    rows = answer_rows(source.answers) if with_answers else ()
    return AnalysisPage(
        title=suite.name,
        count=result.summary.totals.answers,
        created=f"{created:%Y-%m-%d %H:%M} UTC",
        goal=(result.evaluation.goal or "").strip(),
        success=result.success,
        verdict=verdict(result),
        notices=(*notices, *result.warnings),
        parts=tuple(part for part in parts if not part.empty),
        as_tables=report.tables,
        answers=rows,
        hidden_answers=len(source.answers) - len(rows) if with_answers else 0,
        interactive=report.interactive,
    )


def _wanted(section: Section, report: EvaluationReport, result: EvaluationResult) -> bool:
    """Return whether the settings ask for a section: by its name, else by the style or by statistical tests."""
    tested = section == "statistical_analysis" and result.statistics is not None
    return report.sections.get(section, tested or section in _STYLES[report.style])


def _part(section: Section, source: _Source) -> Part:
    part = replace(_PARTS[section](source), id=section.replace("_", "-"), title=SECTION_TITLES[section])
    shown = tuple(table for table in part.tables if table.rows)
    return replace(part, tables=shown, charts=part.charts if source.report.charts else ())


def _executive_summary(source: _Source) -> Part:
    return Part("", "", paragraphs=tuple(headlines(source.result, source.report.tone)))


def _key_metrics(source: _Source) -> Part:
    result = source.result
    charts: list[Chart] = []
    scores = [answer.final_score for answer in source.answers if answer.final_score is not None]
    if scores:
        charts.append(score_histogram("Final scores", scores, result.aggregate.threshold))
    times = result.summary.times
    if times.ordered:
        half, most = times.quantile(0.5), times.quantile(0.95)
        marks = [Mark(half or 0.0, f"half: {time(half)}"), Mark(most or 0.0, f"95 %: {time(most)}")]
        charts.append(time_histogram("Time for an answer", times.ordered, marks))
    return Part("", "", figures=figures(result, source.report.tone), charts=tuple(charts))


def _detailed_results(source: _Source) -> Part:
    result, analyses = source.result, source.result.evaluation.analyses
    found = [analysis_tables.metrics(result)]
    if result.personas:
        found.append(analysis_tables.personas(result.personas, analyses.focus_personas))
        focused = [name for name in analyses.focus_personas if name in result.personas]
        found += [analysis_tables.focus(result, name) for name in focused]
    found.append(analysis_tables.baseline(result))
    if result.trends:
        found.append(analysis_tables.trends({"Score": result.trends.scores, "Time": result.trends.durations}))
    found.append(analysis_tables.reasons("Most frequent reasons for lost points", result.summary.top_reasons))
    found.append(analysis_tables.reasons("Why scores are absent", result.summary.absent_reasons))
    called_out = result.outliers is not None and analyses.outlier_handling != "include"
    return Part(
        "",
        "",
        paragraphs=tuple(_outlier_notes(result)) if called_out else (),
        tables=(*found, *(_outlier_tables(result) if called_out else ())),
        charts=tuple(_bar_charts(result)),
    )


def _bar_charts(result: EvaluationResult) -> Iterator[Chart]:
    threshold = result.aggregate.threshold
    scored = [(name, stats) for name, stats in result.summary.metrics.items() if stats.scores.count]
    if scored:
        bars = tuple(
            Bar(name, stats.scores.mean, number(stats.scores.mean), (stats.minimum or 0.0, stats.maximum or 0.0))
            for name, stats in scored[:_MOST_BARS]
        )
        yield Bars("Mean score of each metric, and its range", bars, (Mark(threshold, f"threshold {threshold:g}"),))
    rates = [(stats.pass_rate, name) for name, stats in result.personas.items() if stats.pass_rate is not None]
    if len(rates) > 1:
        yield Bars(
            "Pass rate of each persona",
            tuple(Bar(name, rate, f"{rate:.0%}") for rate, name in sorted(rates)[:_MOST_BARS]),
        )


def _outlier_notes(result: EvaluationResult) -> Iterator[str]:
    if result.outliers is None:
        return
    removed = result.evaluation.analyses.outlier_handling == "remove"
    measures: tuple[tuple[str, OutlierReport, Callable[[float | None], str]], ...] = (
        ("took unusually long or short", result.outliers.durations, time),
        ("scored unusually", result.outliers.scores, number),
    )
    for what, unusual, write in measures:
        if unusual.outliers:
            with_them, without = write(unusual.everything.average), write(unusual.usual.average)
            effect = (
                f"they are left out of the averages: {without} instead of {with_them}"
                if removed
                else f"the average with them is {with_them}, without them {without}"
            )
            yield f"{count(len(unusual.outliers), 'answer')} {what}; {effect}."


def _outlier_tables(result: EvaluationResult) -> tuple[Table, ...]:
    if result.outliers is None:
        return ()
    return (
        analysis_tables.unusual_times(result.outliers.durations),
        analysis_tables.unusual_scores(result.outliers.scores),
    )


def _statistical_analysis(source: _Source) -> Part:
    result = source.result
    found = [analysis_tables.distribution(result)]
    if result.statistics:
        found += [analysis_tables.intervals(result, result.statistics), analysis_tables.tests(result.statistics)]
    deviation = result.summary.totals.scores.deviation
    spread = () if deviation is None else (f"Final scores have a standard deviation of {deviation:.3f}.",)
    return Part("", "", paragraphs=spread, tables=tuple(found))


def _failure_cases(source: _Source) -> Part:
    failing = heapq.nsmallest(_MOST_EXAMPLES[source.report.style], filter(failed, source.answers), key=worst_first)
    total = sum(map(failed, source.answers))
    text = f"{count(total, 'answer')} did not pass."
    if total > len(failing):
        text = f"{text} These are the {len(failing):,} with the lowest scores."
    return Part(
        "",
        "",
        paragraphs=(text,),
        items=tuple(example(answer, "bad") for answer in failing),
        tables=(analysis_tables.causes(source.result),),
    )


def _success_examples(source: _Source) -> Part:
    best = heapq.nsmallest(_MOST_GOOD, filter(passed, source.answers), key=best_first)
    return Part("", "", items=tuple(example(answer, "good") for answer in best))


def _recommendations(source: _Source) -> Part:
    items = source.result.recommendations
    nothing = () if items else ("There is nothing to recommend.",)
    found = tuple(Item(item.title, item.priority, _PRIORITIES[item.priority], (item.summary,)) for item in items)
    return Part("", "", paragraphs=nothing, items=found)


def _action_items(source: _Source) -> Part:
    items = source.result.recommendations
    return Part("", "", items=tuple(Item(item.action, item.priority, _PRIORITIES[item.priority]) for item in items))


_PARTS: Mapping[Section, Callable[[_Source], Part]] = {
    "executive_summary": _executive_summary,
    "key_metrics": _key_metrics,
    "detailed_results": _detailed_results,
    "statistical_analysis": _statistical_analysis,
    "failure_cases": _failure_cases,
    "success_examples": _success_examples,
    "recommendations": _recommendations,
    "action_items": _action_items,
}
