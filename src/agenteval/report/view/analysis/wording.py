"""The words of a suite's analysis: the order of its sections and its headline, for each tone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from agenteval.report.view.view import NOTHING, count, number, signed
from agenteval.results.analysis.formatting import percent, seconds
from agenteval.results.analysis.inference import Interval
from agenteval.results.analysis.result import EvaluationResult
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
