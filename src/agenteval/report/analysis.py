"""Writes ``evaluation/``, the analyses of suites: summary.json, per_trace.jsonl, report.md and report.html.

The sections of a report are chosen by style and settings, in the order of the tone.
"""

from __future__ import annotations

import heapq
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agenteval.core.records import replace
from agenteval.report import analysis_tables as tables
from agenteval.report.analysis_tables import interval, share, time, written
from agenteval.report.charts import score_histogram, time_histogram
from agenteval.report.facts import Report
from agenteval.report.html import MET_STATES, fill, generate, read_user_template
from agenteval.report.parts import Figure, Part, ReportFile, State, UserTemplateError, listed
from agenteval.report.report import ANALYSES
from agenteval.report.words import count, number
from agenteval.results.analysis.answers import EvaluatedAnswer
from agenteval.results.analysis.evaluate import AnalysedSuite, EvaluationResult
from agenteval.results.analysis.summary import persona_of
from agenteval.results.verdict import percent
from agenteval.suite.evaluation import EvaluationReport, Section, Style, Tone

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
_STEPS: tuple[Section, ...] = ("recommendations", "action_items")
_EXAMPLES: tuple[Section, ...] = ("failure_cases", "success_examples")
#: The order of the sections in each tone.
ORDER: Mapping[Tone, tuple[Section, ...]] = {
    "technical": (
        "executive_summary", "key_metrics", "statistical_analysis", "detailed_results", *_EXAMPLES, *_STEPS,
    ),
    "executive": (
        "executive_summary", *_STEPS, "key_metrics", *_EXAMPLES, "detailed_results", "statistical_analysis",
    ),
    "balanced": (
        "executive_summary", "key_metrics", *_STEPS, "detailed_results", *_EXAMPLES, "statistical_analysis",
    ),
}  # fmt: skip
# The number of sentences of the summary in each tone.
_LEAD: Mapping[Tone, int] = {"executive": 1, "balanced": 2, "technical": 4}
_QUICK: frozenset[Section] = frozenset({"executive_summary", "key_metrics"})
_STYLES: Mapping[Style, frozenset[Section]] = {
    "quick": _QUICK,
    "standard": _QUICK | {"detailed_results", "failure_cases", *_STEPS},
    "detailed": frozenset(SECTION_TITLES),
}
#: Maximum number of answers in the table of the HTML report; browsers become slow with more.
MOST_ANSWERS = 2_000
_MOST_NOTICES = 50
_MOST_GOOD = 5
_MOST_EXAMPLES: Mapping[Style, int] = {"quick": 5, "standard": 10, "detailed": 50}
_STATUSES: Mapping[bool | None, str] = {False: "failed", None: "skipped", True: "passed"}


def make_analysis_page(suite: AnalysedSuite, created: datetime, notices: Sequence[str] = ()) -> dict[str, Any]:
    """Return what the templates show according to the settings; ``created`` is the current time in UTC."""
    report, result = suite.report or EvaluationReport(), suite.result
    chosen = [section for section in ORDER[report.tone] if _is_wanted(section, report, result)]
    parts = [_part(section, suite, report) for section in chosen]
    if result.checks:
        conditions = Part("conditions", "Conditions", tables=(tables.criteria(result.checks),))
        parts.insert(1 if chosen[:1] == ["executive_summary"] else 0, conditions)
    answers: Sequence[EvaluatedAnswer] = ()
    if report.tables and "detailed_results" in chosen:
        answers = heapq.nsmallest(MOST_ANSWERS, suite.answers, key=_failed_first)
    total, made, told = result.content["total_traces"], f"{created:%Y-%m-%d %H:%M} UTC", (*notices, *result.warnings)
    return {
        "title": suite.name,
        "count": total,
        "created": made,
        "facts": (("Answers", f"{total:,}"), ("Made", made)),
        "goal": (result.evaluation.goal or "").strip(),
        "success": result.success,
        "state": MET_STATES[result.success],
        "verdict": verdict(result),
        "notices": told,
        "warnings": listed("warnings", "Warnings", told, _MOST_NOTICES, warns=True),
        "parts": tuple(part for part in parts if not part.empty),
        "as_tables": report.tables,
        "answers": tuple((it, persona_of(it), _STATUSES[it.passed], tuple(_reasons(it))) for it in answers),
        "hidden_answers": len(suite.answers) - len(answers) if answers else 0,
    }


def verdict(result: EvaluationResult) -> str:
    """Return the result of the conditions in a few words."""
    met = [check.met for check in result.checks]
    if not met:
        return "no conditions set"
    if False in met:
        return f"{met.count(False)} of {count(len(met), 'condition')} not met"
    if None in met:
        return f"{met.count(None)} of {count(len(met), 'condition')} could not be checked"
    return "all conditions met"


def _is_wanted(section: Section, report: EvaluationReport, result: EvaluationResult) -> bool:
    is_tested = section == "statistical_analysis" and "statistics" in result.analysis
    return report.sections.get(section, is_tested or section in _STYLES[report.style])


def _part(section: Section, suite: AnalysedSuite, report: EvaluationReport) -> Part:
    part = replace(_PARTS[section](suite, report), id=section.replace("_", "-"), title=SECTION_TITLES[section])
    shown = tuple(table for table in part.tables if table.rows)
    return replace(part, tables=shown, charts=part.charts if report.charts else ())


def _executive_summary(suite: AnalysedSuite, report: EvaluationReport) -> Part:
    return Part(paragraphs=tuple(_sentences(suite.result))[: _LEAD[report.tone]])


def _sentences(result: EvaluationResult) -> Iterator[str]:
    content = result.content
    passed, judged, scores = content["passed_traces"], content["judged_traces"], content["score_stats"]
    if not judged:
        yield "No answer could be judged."
        return
    unjudged = content["total_traces"] - judged
    without = f"; {count(unjudged, 'answer')} could not be scored" if unjudged else ""
    yield f"{passed:,} of {count(judged, 'answer')} passed ({percent(content['pass_rate'])}){without}."
    if rate := result.analysis.get("comparison", {}).get("pass_rate"):
        yield f"The pass rate was {percent(rate['baseline'])} in the baseline and is {percent(rate['current'])} now."
    if scores["average"] is not None:
        yield f"The mean score is {number(scores['average'])}, {number(content['threshold'])} is needed to pass."
    if scores["deviation"] is not None:
        yield f"Final scores have a standard deviation of {number(scores['deviation'])}."


def _key_metrics(suite: AnalysedSuite, _: EvaluationReport) -> Part:
    content = suite.result.content
    scores = [answer.final_score for answer in suite.answers if answer.final_score is not None]
    charts = [score_histogram("Final scores", scores, content["threshold"])] if scores else []
    if times := sorted(answer.duration_ms for answer in suite.answers if answer.duration_ms is not None):
        quantiles = {f"{part} %": content["duration_stats"][f"p{part}"] for part in (50, 95)}
        marks = [(value, f"{name}: {time(value)}") for name, value in quantiles.items()]
        charts.append(time_histogram("Time for an answer", times, marks))
    return Part(figures=tuple(_figures(suite.result)), charts=tuple(charts))


def _figures(result: EvaluationResult) -> Iterator[Figure]:
    content, times = result.content, result.content["duration_stats"]
    total, average, threshold = content["total_traces"], content["average_score"], content["threshold"]
    intervals = result.analysis.get("statistics", {}).get("intervals", {})
    writers: Mapping[str, Callable[[float], str]] = {"pass_rate": percent, "average_score": number}
    bounds = {name: f", {interval(intervals[name], write)}" for name, write in writers.items() if intervals.get(name)}
    note = f"{content['passed_traces']:,} of {content['judged_traces']:,}{bounds.get('pass_rate', '')}"
    yield Figure("Pass rate", share(content["pass_rate"]), note)
    if average is not None:
        state: State = "good" if average >= threshold else "bad"
        yield Figure(
            "Mean score", number(average), f"needed {number(threshold)}{bounds.get('average_score', '')}", state
        )
    if result.checks:
        met = sum(check.met is True for check in result.checks)
        yield Figure("Conditions met", f"{met} of {len(result.checks)}", verdict(result), MET_STATES[result.success])
    if times["max"] is not None:
        yield Figure("Mean time", time(times["average"]), f"longest {time(times['max'])}")
        yield Figure("95 % are faster than", time(times["p95"]))
    failed = total - content["successful_traces"]
    note = f"{failed:,} of {total:,}"
    yield Figure("Without success", share(content["error_rate"]), note, "bad" if failed else "good")
    if tokens := content["token_stats"]["count"]:
        yield Figure("Mean tokens", f"{content['token_stats']['average']:,.0f}", f"of {count(tokens, 'answer')}")
    if absent := sum(stats["absent"] for stats in content["evaluator_stats"].values()):
        yield Figure("Absent scores", f"{absent:,}", next((why for why, _ in content["absent_reasons"]), ""))


def _detailed_results(suite: AnalysedSuite, _: EvaluationReport) -> Part:
    result, content, analysis = suite.result, suite.result.content, suite.result.analysis
    performance = analysis.get("performance", {})
    called_out = performance if performance.get("outlier_handling") != "include" else {}
    return Part(
        paragraphs=tuple(_outlier_notes(called_out)),
        tables=(
            tables.metrics(content),
            *tables.personas(content, result.evaluation.analyses.focus_personas),
            tables.baseline(analysis.get("comparison", {})),
            tables.trends(performance.get("trends", {})),
            tables.reasons("Most frequent reasons for lost points", content["top_reasons"]),
            tables.reasons("Why scores are absent", content["absent_reasons"]),
            *tables.outliers(called_out),
        ),
    )


def _outlier_notes(performance: Mapping[str, Any]) -> Iterator[str]:
    words = {"duration_ms": "took unusually long or short", "final_score": "scored unusually"}
    for measure, effect in performance.get("outlier_effect", {}).items():
        if effect["count"]:
            everything, without = (written(measure, effect[f"average_{key}"]) for key in ("with", "without"))
            told = (
                f"they are left out of the averages: {without} instead of {everything}"
                if performance["outlier_handling"] == "remove"
                else f"the average with them is {everything}, without them {without}"
            )
            yield f"{count(effect['count'], 'answer')} {words[measure]}; {told}."


def _statistical_analysis(suite: AnalysedSuite, _: EvaluationReport) -> Part:
    content, statistics = suite.result.content, suite.result.analysis.get("statistics")
    inferred = (tables.intervals(content), tables.tests(statistics)) if statistics else ()
    return Part(tables=(tables.distribution(content["duration_stats"]), *inferred))


def _failure_cases(suite: AnalysedSuite, report: EvaluationReport) -> Part:
    failed = [answer for answer in suite.answers if answer.passed is False]
    shown = heapq.nsmallest(_MOST_EXAMPLES[report.style], failed, key=_worst_first)
    text = f"{count(len(failed), 'answer')} did not pass." if failed else "No answer failed."
    if len(failed) > len(shown):
        text = f"{text} These are the {len(shown):,} with the lowest scores."
    causes = tables.causes(suite.result.analysis.get("failures", {}))
    return Part(paragraphs=(text,), items=tuple(_example(answer, "bad") for answer in shown), tables=(causes,))


def _success_examples(suite: AnalysedSuite, _: EvaluationReport) -> Part:
    passed = (answer for answer in suite.answers if answer.passed)
    best = heapq.nsmallest(_MOST_GOOD, passed, key=lambda answer: (-_score(answer), *_worst_first(answer)))
    return Part(items=tuple(_example(answer, "good") for answer in best))


def _steps(suite: AnalysedSuite, text: Callable[[Mapping[str, Any]], str]) -> Part:
    items = suite.result.analysis.get("recommendations", ())
    states: Mapping[str, State] = {"high": "bad", "medium": "neutral"}
    return Part(items=tuple(Figure(text(item), item["priority"], state=states[item["priority"]]) for item in items))


_PARTS: Mapping[Section, Callable[[AnalysedSuite, EvaluationReport], Part]] = {
    "executive_summary": _executive_summary,
    "key_metrics": _key_metrics,
    "detailed_results": _detailed_results,
    "statistical_analysis": _statistical_analysis,
    "failure_cases": _failure_cases,
    "success_examples": _success_examples,
    "recommendations": lambda suite, _: _steps(suite, lambda item: f"{item['title']}: {item['summary']}"),
    "action_items": lambda suite, _: _steps(suite, lambda item: item["action"]),
}


def _example(answer: EvaluatedAnswer, state: State) -> Figure:
    details = (persona_of(answer), f"iteration {answer.order}", time(answer.duration_ms), answer.trace_id)
    facts = " · ".join(text for text in details if text)
    return Figure(answer.name, number(answer.final_score), state=state, lines=(facts, *_reasons(answer)))


def _reasons(answer: EvaluatedAnswer) -> Iterator[str]:
    if not answer.success:
        yield "the agent gave no answer, or reported a failure"
    for name, reason in answer.reasons.items():
        score = answer.scores.get(name)
        yield f"{name}: {reason}" if score is None else f"{name} {number(score)}: {reason}"


def _score(answer: EvaluatedAnswer) -> float:
    return -1.0 if answer.final_score is None else answer.final_score


def _worst_first(answer: EvaluatedAnswer) -> tuple[Any, ...]:
    return _score(answer), answer.name, answer.order, answer.trace_id, answer.case_id


def _failed_first(answer: EvaluatedAnswer) -> tuple[Any, ...]:
    return (*_STATUSES,).index(answer.passed), *_worst_first(answer)


_MOST_TRACES = 10_000  # in a user's template


def report_files(report: Report) -> Iterator[ReportFile]:
    """Yield the files of all analysed suites; if there are several, each suite has a separate folder."""
    created = datetime.now(UTC)
    asking = [suite for suite in report.source.analyses if suite.report is not None]
    for suite in asking:
        folder = f"{ANALYSES}/{_slug(suite.path)}" if len(asking) > 1 else ANALYSES
        for file in suite_files(suite, created):
            yield replace(file, name=f"{folder}/{file.name}")


def suite_files(suite: AnalysedSuite, created: datetime) -> Iterator[ReportFile]:
    """Yield the files of one suite. Data come first, so that a failing report does not lose them."""
    yield ReportFile("summary.json", [json.dumps(suite.result.content, indent=2, ensure_ascii=False), "\n"])
    lines = (f"{json.dumps(answer.as_json(), ensure_ascii=False)}\n" for answer in suite.answers)
    yield ReportFile("per_trace.jsonl", lines)
    if suite.report is None:
        return
    if suite.report.markdown:
        yield ReportFile("report.md", render_markdown(suite, created))
    if suite.report.html:
        yield _html_file(suite, created)


def render_markdown(suite: AnalysedSuite, created: datetime) -> str:
    """Return the report as Markdown, without charts."""
    # Imported here and below, so that a run without analyses does not import it.
    from agenteval.report.templates import MARKDOWN, built_in_template

    return built_in_template(MARKDOWN, "report.md.j2").render(page=make_analysis_page(suite, created))


def _html_file(suite: AnalysedSuite, created: datetime) -> ReportFile:
    template = suite.report.template if suite.report else None
    notices: tuple[str, ...] = ()
    if template is not None:
        try:
            return ReportFile("report.html", _filled(read_user_template(Path(template)), suite, created))
        except UserTemplateError as error:
            notices = (str(error),)
    page = make_analysis_page(suite, created, notices)
    is_interactive = page["answers"] and suite.report and suite.report.interactive
    scripts = ("elements.js", "answers.js") if is_interactive else ()
    return ReportFile("report.html", generate("analysis.html.j2", scripts, page=page), notices)


def _filled(template: str, suite: AnalysedSuite, created: datetime) -> str:
    summary = dict(suite.result.content)
    traces = [answer.as_json() for answer in itertools.islice(suite.answers, _MOST_TRACES)]
    subtitle = f"{len(suite.answers):,} answers, {created:%Y-%m-%d %H:%M} UTC"
    if left_out := len(suite.answers) - len(traces):
        summary["per_trace_left_out"] = left_out
        subtitle = f"{subtitle}; {left_out:,} of them only in per_trace.jsonl"
    texts = {"TITLE": suite.name, "DATE": f"{created:%Y-%m-%dT%H:%M:%SZ}", "SUBTITLE": subtitle}
    return fill(template, texts, summary, traces)


def _slug(path: str) -> str:
    return re.sub(r"[^\w.-]+", "_", path).strip("_.") or "suite"
