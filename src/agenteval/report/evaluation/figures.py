"""The numbers that lead an evaluation report, chosen and named for each tone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from agenteval.report.evaluation.parts import Figure, State
from agenteval.report.evaluation.wording import interval, share, time, verdict
from agenteval.report.view.view import NOTHING, count, number
from agenteval.results.analysis.formatting import percent
from agenteval.results.analysis.result import EvaluationResult
from agenteval.suite.evaluation import Tone

# What figures are called; a tone leads with the first of its list and leaves out what is not in it.
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
    """The numbers that lead, the most important of the tone first."""
    return tuple(_figures(result, tone))


def _figures(result: EvaluationResult, tone: Tone) -> Iterator[Figure]:
    for kind, label in _LABELS[tone].items():
        value, note, state = _FIGURES[kind](result)
        if value:
            yield Figure(label, value, note, state)


_Told = tuple[str, str, State]


def _pass_rate(result: EvaluationResult) -> _Told:
    totals = result.summary.totals
    bounds = result.statistics.pass_rate if result.statistics else None
    note = f"{totals.passed:,} of {totals.judged:,}"
    return share(totals.pass_rate), f"{note}, {interval(bounds, percent)}" if bounds else note, "neutral"


def _score(result: EvaluationResult) -> _Told:
    scores = result.summary.totals.scores
    if scores.average is None:
        return NOTHING, "", "neutral"
    bounds = result.statistics.score if result.statistics else None
    note = f"needed {result.aggregate.threshold:g}"
    state: State = "good" if scores.average >= result.aggregate.threshold else "bad"
    return f"{scores.average:.3f}", f"{note}, {interval(bounds, number)}" if bounds else note, state


def _conditions(result: EvaluationResult) -> _Told:
    if not result.checks:
        return "", "", "neutral"
    met = sum(check.met is True for check in result.checks)
    state: State = "neutral" if result.success is None else "good" if result.success else "bad"
    return f"{met} of {len(result.checks)}", verdict(result), state


def _persona(result: EvaluationResult) -> _Told:
    rates = [(stats.pass_rate, name) for name, stats in result.personas.items() if stats.pass_rate is not None]
    if len(rates) < 2:
        return "", "", "neutral"
    rate, name = min(rates)
    return name, f"{percent(rate)} good answers", "neutral"


def _average_time(result: EvaluationResult) -> _Told:
    times = result.summary.times
    return (time(times.averaged.average), f"longest {time(times.maximum)}", "neutral") if times.ordered else _NOT_TOLD


def _quantile(result: EvaluationResult, part: float) -> _Told:
    times = result.summary.times
    return (time(times.quantile(part)), f"longest {time(times.maximum)}", "neutral") if times.ordered else _NOT_TOLD


def _errors(result: EvaluationResult) -> _Told:
    totals = result.summary.totals
    failed = totals.answers - totals.successful
    return share(totals.error_rate), f"{failed:,} of {totals.answers:,}", "bad" if failed else "good"


def _tokens(result: EvaluationResult) -> _Told:
    tokens = result.summary.tokens
    return (f"{tokens.mean:,.0f}", f"of {count(tokens.count, 'answer')}", "neutral") if tokens.count else _NOT_TOLD


def _absent(result: EvaluationResult) -> _Told:
    absent = sum(stats.absent for stats in result.summary.metrics.values())
    reason = result.summary.absent_reasons[0][0] if result.summary.absent_reasons else ""
    return (f"{absent:,}", reason, "neutral") if absent else _NOT_TOLD


_NOT_TOLD: _Told = ("", "", "neutral")
_FIGURES: Mapping[str, Callable[[EvaluationResult], _Told]] = {
    "pass_rate": _pass_rate,
    "score": _score,
    "conditions": _conditions,
    "persona": _persona,
    "average": _average_time,
    "p50": lambda result: _quantile(result, 0.5),
    "p95": lambda result: _quantile(result, 0.95),
    "p99": lambda result: _quantile(result, 0.99),
    "errors": _errors,
    "tokens": _tokens,
    "absent": _absent,
}
