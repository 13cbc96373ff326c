"""What an evaluation report shows: sections chosen by style and settings, in the order of the tone."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from agenteval.report.evaluation import tables
from agenteval.report.evaluation.answers import answer_rows, best_first, example, worst_first
from agenteval.report.evaluation.figures import figures
from agenteval.report.evaluation.parts import Item, Page, Part, State, Table
from agenteval.report.evaluation.wording import ORDER, SECTION_TITLES, headlines, time, verdict
from agenteval.report.html.svg import Bar, Bars, Chart, Mark, score_histogram, time_histogram
from agenteval.report.view.view import count, number
from agenteval.results.analysis.answers import EvaluatedAnswer
from agenteval.results.analysis.failures import failed
from agenteval.results.analysis.outliers import OutlierReport
from agenteval.results.analysis.result import EvaluationResult
from agenteval.results.analysis.summary import passed
from agenteval.suite.evaluation import EvaluationReport, Section, Style

_MOST_BARS = 20
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
class Source:
    """What a page is made of."""

    result: EvaluationResult
    answers: Sequence[EvaluatedAnswer]
    report: EvaluationReport


def make_page(source: Source, title: str, created: datetime) -> Page:
    """The report as its settings want it.

    Args:
        source: the run and the settings.
        title: what was evaluated.
        created: now, in UTC.
    """
    result, report = source.result, source.report
    chosen = [section for section in ORDER[report.tone] if _wanted(section, report)]
    parts = [_part(section, source) for section in chosen]
    if result.checks:
        place = 1 if chosen and chosen[0] == "executive_summary" else 0
        parts.insert(place, Part("conditions", "Conditions", tables=(tables.criteria(result.checks),)))
    with_answers = report.tables and "detailed_results" in chosen
    rows = answer_rows(source.answers) if with_answers else ()
    return Page(
        title=title,
        subtitle=count(result.summary.totals.answers, "answer"),
        created=f"{created:%Y-%m-%d %H:%M} UTC",
        goal=result.evaluation.goal,
        success=result.success,
        verdict=verdict(result),
        notices=tuple(result.warnings),
        parts=tuple(part for part in parts if not part.empty),
        answers=rows,
        hidden_answers=len(source.answers) - len(rows) if with_answers else 0,
        interactive=report.interactive,
    )


def _wanted(section: Section, report: EvaluationReport) -> bool:
    return report.sections.get(section, section in _STYLES[report.style])


def _part(section: Section, source: Source) -> Part:
    part = replace(_PARTS[section](source), id=section.replace("_", "-"), title=SECTION_TITLES[section])
    shown = tuple(table for table in part.tables if table.rows)
    return replace(part, tables=shown, charts=part.charts if source.report.charts else ())


def _executive_summary(source: Source) -> Part:
    return Part("", "", paragraphs=tuple(headlines(source.result, source.report.tone)))


def _key_metrics(source: Source) -> Part:
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


def _detailed_results(source: Source) -> Part:
    result, analyses = source.result, source.result.evaluation.analyses
    found = [tables.metrics(result)]
    if result.personas:
        found.append(tables.personas(result.personas, analyses.focus_personas))
        focused = [name for name in analyses.focus_personas if name in result.personas]
        found += [tables.focus(result, name) for name in focused]
    found.append(tables.baseline(result))
    if result.trends:
        found.append(tables.trends({"Score": result.trends.scores, "Time": result.trends.durations}))
    found.append(tables.reasons("Most frequent reasons for lost points", result.summary.top_reasons))
    found.append(tables.reasons("Why scores are absent", result.summary.absent_reasons))
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
        tables.unusual_times(result.outliers.durations),
        tables.unusual_scores(result.outliers.scores),
    )


def _statistical_analysis(source: Source) -> Part:
    result = source.result
    found = [tables.distribution(result)]
    if result.statistics:
        found += [tables.intervals(result, result.statistics), tables.tests(result.statistics)]
    deviation = result.summary.totals.scores.deviation
    spread = () if deviation is None else (f"Final scores have a standard deviation of {deviation:.3f}.",)
    return Part("", "", paragraphs=spread, tables=tuple(found))


def _failure_cases(source: Source) -> Part:
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
        tables=(tables.causes(source.result),),
    )


def _success_examples(source: Source) -> Part:
    best = heapq.nsmallest(5, filter(passed, source.answers), key=best_first)
    return Part("", "", items=tuple(example(answer, "good") for answer in best))


def _recommendations(source: Source) -> Part:
    items = source.result.recommendations
    nothing = () if items else ("Nothing stands out that would have to be done.",)
    found = tuple(Item(item.title, item.priority, _PRIORITIES[item.priority], (item.summary,)) for item in items)
    return Part("", "", paragraphs=nothing, items=found)


def _action_items(source: Source) -> Part:
    items = source.result.recommendations
    return Part("", "", items=tuple(Item(item.action, item.priority, _PRIORITIES[item.priority]) for item in items))


_PARTS: Mapping[Section, Callable[[Source], Part]] = {
    "executive_summary": _executive_summary,
    "key_metrics": _key_metrics,
    "detailed_results": _detailed_results,
    "statistical_analysis": _statistical_analysis,
    "failure_cases": _failure_cases,
    "success_examples": _success_examples,
    "recommendations": _recommendations,
    "action_items": _action_items,
}
