"""Finds what the gate decides on: failures, regressions, and what was not evaluated, compared or confirmed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from agenteval.compare.gate_counts import Counts, compared, of_cases, some
from agenteval.compare.gate_failures import Failures
from agenteval.compare.gate_words import cases, failed
from agenteval.results.analysis.formatting import criterion_texts, unmeasured
from agenteval.results.case import Criterion
from agenteval.results.comparison import ComparedMetric, ComparedResource, Comparison
from agenteval.results.model import Results
from agenteval.results.rollup import is_undecided
from agenteval.results.verdict import Condition, MendedBy, Unproven

#: The point of a run that needs a baseline and has none. The reason is a warning of the run.
UNCOMPARED: Final = Unproven(
    what="baseline",
    text="there is no baseline to compare with, and on-missing-baseline is fail",
    mended_by="outside",
)
# Smaller probabilities are not told apart.
_SMALLEST = 0.0001
_RESOURCES = {"latency_ms": "the latency", "tokens": "the tokens of an answer", "cost_usd": "the cost of an answer"}


@dataclass(frozen=True)
class Finding:
    """A reason to fail, of a kind that ``fail_on`` may contain, or a warning; ``details`` are further sentences.

    ``conditions`` are what the gate does not meet, without the words of the rule that they all have in common.
    """

    kind: Literal["failures", "regressions", "warning"]
    text: str
    details: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()


def failures_and_regressions(results: Results, counts: Counts, failing: Failures | None) -> list[Finding]:
    """Return every failure and regression, the most important first.

    Args:
        failing: its failing cases; ``None`` if each of them fails the gate.
    """
    comparison = results.comparison
    found = list(_regressions(comparison)) if comparison else []
    if text := failed(counts, failing):
        found.append(Finding("failures", text, conditions=tuple(_failures(counts, failing, broke=bool(found)))))
    unmet = [_unmet(criterion) for suite in results.suites for criterion in suite.criteria if criterion.met is False]
    if unmet:
        text = f"criterion not met: {', '.join(unmet)}"
        found.append(Finding("failures", text, conditions=(Condition(found=text, about="criteria"),)))
    return found


def _unmet(criterion: Criterion) -> str:
    """Return ``error_rate (0.6%, needed at most 0.5%)``."""
    if criterion.value is None or criterion.threshold is None:
        return criterion.name
    value, limit = criterion_texts(criterion)
    return f"{criterion.name} ({value}, needed {limit})"


def _regressions(comparison: Comparison) -> Iterator[Finding]:
    if comparison.verdict == "regressed":
        worse = _broke(comparison)
        by_cases = worse and comparison.policy.get("name") == "any-flip"
        text = f"{of_cases(worse, compared(comparison))} broke" if by_cases else comparison.headline
        yield Finding("regressions", text, tuple(comparison.findings), tuple(_worse(comparison)))
        # The findings of the statistics name the metrics.
        for metric in comparison.metrics if comparison.stage is None else ():
            if metric.verdict == "regressed" and metric.gating and metric.difference < 0:
                moved = f"from {metric.baseline:.2f} to {metric.current:.2f}"
                yield Finding("regressions", f"the mean of {metric.id} dropped {moved}")
    for resource in comparison.resources:
        if resource.exceeded:
            text = _exceeded(resource)
            yield Finding("regressions", text, conditions=(_of_resource(resource),))


def _failures(counts: Counts, failing: Failures | None, *, broke: bool) -> Iterator[Condition]:
    """Yield the failing cases as a condition; those that broke are told by the regressions already."""
    if failing is None:
        yield Condition(found=failed(counts, None), about="cases")
        return
    also = len(failing.counting) - (len(failing.broke) if broke else 0)
    if also:
        more = "more " if broke and failing.broke else ""
        yield Condition(found=f"{also} {more}of {cases(counts.cases)} failed", about="cases")


def _broke(comparison: Comparison) -> int:
    return sum(case.change == "regressed" and "quarantined" not in case.notes for case in comparison.cases)


def _worse(comparison: Comparison) -> Iterator[Condition]:
    """Yield the cases that broke and the means that fell, each with the limit that decided."""
    broke = _broke(comparison)
    by_cases = comparison.stage is not None or comparison.policy.get("name") not in {"mean-drop", "threshold"}
    means = [metric for metric in comparison.metrics if metric.gating and metric.verdict == "regressed"]
    if broke and by_cases:
        yield Condition(found=f"{of_cases(broke, compared(comparison))} broke", about="cases")
    for metric in means:
        if metric.difference < 0:
            moved = f"from {metric.baseline:.2f} to {metric.current:.2f}"
            text = f"the mean of {metric.id} fell {moved}"
            yield Condition(found=text, rule=_limit(metric, comparison), about="metrics")
    if not means and not (broke and by_cases):
        yield Condition(found=comparison.headline, about="cases")


def _limit(metric: ComparedMetric, comparison: Comparison) -> str:
    """Return the condition that a mean does not meet; empty for an agent of which each difference is a proof."""
    if metric.p is not None and metric.limit is not None:
        return f"probability without a change: {_percent(metric.p)}, proven from {_percent(metric.limit)} down"
    tolerance = comparison.policy.get("tolerance")
    return f"at most {tolerance:g} lower" if comparison.stage is None and isinstance(tolerance, float) else ""


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share >= _SMALLEST else f"less than {100 * _SMALLEST:g} %"


def _of_resource(resource: ComparedResource) -> Condition:
    rise = "from nothing" if resource.change is None else f"by {resource.change:.0%}"
    allowed = f"at most {resource.allowed or 0:.0%}"
    return Condition(found=f"{_RESOURCES[resource.name]} rose {rise}", rule=allowed, about="resources")


def _exceeded(resource: ComparedResource) -> str:
    rise = "from nothing" if resource.change is None else f"by {resource.change:.0%}"
    return f"{_RESOURCES[resource.name]} rose {rise}, {resource.allowed or 0:.0%} is allowed"


def unchecked(results: Results, *, fails: bool) -> Iterator[Finding]:
    """Yield the criteria that could not be checked, and the metrics that measured nothing.

    Args:
        results: the run. A metric may be for cases that were not selected, or for other suites: then it is a warning.
        fails: whether they are failures; otherwise they are a warning.
    """
    unknown = [criterion.name for suite in results.suites for criterion in suite.criteria if criterion.met is None]
    if unknown:
        text = f"criterion unchecked: {', '.join(unknown)}"
        conditions = (Condition(found=text, about="criteria"),)
        yield Finding("failures" if fails else "warning", text, conditions=conditions)
    if not (results.summary.passed or results.summary.failed):
        # Nothing was checked at all, which is a separate point.
        return
    covered = results.run.coverage
    is_selection = covered is not None and bool(covered.selection_note)
    everywhere, in_suites = _unmeasured_metrics(results)
    if everywhere:
        text = f"metric unchecked: {', '.join(everywhere)} (unmeasured in every reply)"
        conditions = (Condition(found=text, about="metrics"),)
        yield Finding("failures" if fails and not is_selection else "warning", text, conditions=conditions)
    if in_suites:
        yield Finding("warning", f"metric unchecked: {', '.join(in_suites)} (unmeasured in every reply of the suite)")


def _unmeasured_metrics(results: Results) -> tuple[list[str], list[str]]:
    """Return the metrics that measured nothing: in the whole run, and only in some suites.

    A metric that several suites share may be for the others.
    """
    known = results.summary.metrics
    found = {(name, suite.path): name in known for suite in results.suites for name in suite.unmeasured}
    everywhere = dict.fromkeys(name for (name, _), is_known in found.items() if not is_known)
    return list(everywhere), [f"{name} of {path}" for (name, path), is_known in found.items() if is_known]


def unjudged_cases(results: Results, counts: Counts) -> Iterator[Finding]:
    """Yield the number of cases that limits of their suites left to no judge."""
    judging = results.summary.judging
    unjudged = sum(item.cases for item in judging.not_judged if item.cause != "budget") if judging else 0
    if unjudged:
        text = f"{of_cases(unjudged, counts.cases)} unjudged"
        yield Finding("failures", text, conditions=(Condition(found=text, rule="on_unjudged: fail", about="cases"),))


def unproven_points(
    results: Results, counts: Counts, max_error_rate: float, out: Collection[str], failing: Failures | None
) -> tuple[Unproven, ...]:
    """Return what counts and was not evaluated, compared or confirmed, the most important first.

    Args:
        max_error_rate: share of cases (0..1) that may be incompletely evaluated.
        out: ids of quarantined cases.
        failing: its failing cases; ``None`` without a comparison.
    """
    missing = [
        Unproven(what=item.what, text=item.text, mended_by=item.mended_by)
        for item in unmeasured(results, max_error_rate, out)
    ]
    limits = list(_limits(results, is_named=any(item.what == "budget" for item in missing)))
    compared = results.comparison.unproven if results.comparison else []
    is_outside = bool(counts.errors or limits) or any(item.mended_by == "outside" for item in missing)
    nothing = _nothing_checked(results, counts, "outside" if is_outside else "change")
    nothing = nothing or _nothing_decided(results, counts, out)
    return (*limits, *nothing, *missing, *compared, *_not_repeated(failing, compared))


def _not_repeated(failing: Failures | None, compared: Collection[Unproven]) -> Iterator[Unproven]:
    """Yield the cases that passed before and fail now, if no confirmation run tells whether they regressed.

    Args:
        failing: the failing cases; ``None`` without a comparison.
        compared: what the comparison does not prove; it may name a missing confirmation already.
    """
    names = failing.not_repeated if failing else ()
    if names and all(point.what != "confirmation" for point in compared):
        what = "1 case" if len(names) == 1 else f"{len(names):,} cases"
        verb = "fails" if len(names) == 1 else "fail"
        text = f"{what} that passed in the baseline {verb} now and did not run again: {some(names)}"
        yield Unproven(what="confirmation", text=text, mended_by="change")


def _limits(results: Results, *, is_named: bool) -> Iterator[Unproven]:
    """Yield the limit that ended the run.

    Args:
        is_named: whether another point names the exhausted budget with its number of cases.
    """
    covered = results.run.coverage
    if covered is None:
        return
    if covered.ended_by == "time":
        unfinished = of_cases(covered.selected - covered.finished, covered.selected)
        text = f"the time limit was reached: {unfinished} did not finish"
        yield Unproven(what="time", text=text, mended_by="outside")
    elif covered.ended_by == "budget" and not is_named:
        yield Unproven(what="budget", text="the budget of model calls ended before the run did", mended_by="outside")


def _nothing_decided(results: Results, counts: Counts, out: Collection[str]) -> tuple[Unproven, ...]:
    """Return the point of a run of which neither a metric nor a comparison decided about any case."""
    ignored = sum(case.id in out and is_undecided(case, suite.threshold) for suite, case in results.cases())
    undecided = sum(suite.undecided for suite in results.suites) - ignored
    is_compared = results.comparison is not None and bool(results.comparison.metrics)
    if is_compared or not counts.passed or counts.failed or counts.errors or undecided < counts.passed:
        return ()
    text = "nothing was decided: no metric has a threshold above 0 or gives a verdict, and no baseline has its scores"
    return (Unproven(what="nothing", text=text, mended_by="change"),)


def _nothing_checked(results: Results, counts: Counts, mended_by: MendedBy) -> tuple[Unproven, ...]:
    if counts.passed + counts.failed:
        return ()
    if counts.cases:
        why = "no case could be run" if counts.errors else "every case was skipped"
    else:
        why = "every case is in quarantine" if results.summary.cases else "there is no case"
    return (Unproven(what="nothing", text=f"nothing was checked: {why}", mended_by=mended_by),)
