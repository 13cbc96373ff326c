"""The prominent numbers of a report, chosen and named for each tone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from agenteval.report.view.analysis.wording import interval, share, time, verdict
from agenteval.report.view.parts import Figure, State
from agenteval.report.view.run_page import MET_STATES
from agenteval.report.view.view import NOTHING, count, number
from agenteval.results.analysis.formatting import percent
from agenteval.results.analysis.result import EvaluationResult
from agenteval.suite.evaluation import Tone

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
