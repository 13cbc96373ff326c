"""Finds what a run did not measure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from agenteval.results.case import CaseResult
from agenteval.results.model import Judging, Results, Summary
from agenteval.results.verdict import Unproven


def unmeasured(
    results: Results, max_error_rate: float, quarantined: Collection[str] = frozenset()
) -> tuple[Unproven, ...]:
    """Return why a run does not prove what its statuses show; empty if everything that counts was measured.

    Args:
        results: the run. Only its summary is read, and the cases in quarantine.
        max_error_rate: share of cases (0..1) whose evaluation may be incomplete.
        quarantined: ids of cases that do not count.
    """
    left_out = [case for _, case in results.cases() if case.id in quarantined] if quarantined else []
    return (
        *_dead_metrics(results.summary, left_out),
        *_budget(results.summary.judging),
        *_incomplete_cases(results.summary, max_error_rate, left_out),
    )


def coverage_notes(results: Results) -> tuple[str, ...]:
    """Return short texts to show beside the numbers of cases: ``judged 50 of 60 cases (limit of 50 calls)``."""
    notes, summary = [], results.summary
    judging = summary.judging
    if judging is not None:
        limits = ", ".join(dict.fromkeys(item.limit for item in judging.not_judged))
        notes.append(f"judged {_of_cases(judging.judged, judging.cases)} ({limits})")
    if summary.not_fully_evaluated:
        notes.append(f"{_cases(summary.not_fully_evaluated)} not fully evaluated")
    undecided = sum(suite.undecided for suite in results.suites)
    if undecided:
        has = "has" if undecided == 1 else "have"
        notes.append(f"{undecided} of {_cases(summary.cases)} {has} no metric that decides")
    return tuple(notes)


def _dead_metrics(summary: Summary, left_out: Sequence[CaseResult]) -> Iterator[Unproven]:
    ignored = Counter(name for case in left_out for name in _errors(case))
    for name, metric in summary.metrics.items():
        errors = metric.errors - ignored[name]
        if metric.gating and errors and not metric.n:
            how = f"all {errors} attempts" if errors > 1 else "it"
            text = f"metric {name!r} has no score: {how} ended in an error"
            yield Unproven(what="metric", text=text, mended_by="outside")


def _errors(case: CaseResult) -> Iterator[str]:
    """Yield the id of each metric that ended in an error."""
    return (score.id for score in case.scores if score.status == "error")


def _budget(judging: Judging | None) -> Iterator[Unproven]:
    if judging is None:
        return
    for item in judging.not_judged:
        if item.cause == "budget":
            text = f"{_of_cases(item.cases, judging.cases)} not fully judged: {item.limit}"
            yield Unproven(what="budget", text=text, mended_by="outside")


def _incomplete_cases(summary: Summary, max_error_rate: float, left_out: Sequence[CaseResult]) -> Iterator[Unproven]:
    cases = summary.not_fully_evaluated - sum(not case.is_fully_evaluated for case in left_out)
    counted = summary.cases - summary.skipped - sum(case.status != "skipped" for case in left_out)
    if cases > 0 and cases > max_error_rate * counted:
        text = f"{_of_cases(cases, counted)} not fully evaluated: a metric ended in an error"
        yield Unproven(what="cases", text=text, mended_by="outside")


def _of_cases(part: int, total: int) -> str:
    return f"{part:,} of {total:,} {'case' if total == 1 else 'cases'}"


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"{count:,} cases"
