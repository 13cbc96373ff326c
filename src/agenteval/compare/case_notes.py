"""Adds the result of the comparison and the baseline history to each case."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agenteval.compare.samples import Sides
from agenteval.compare.statistics.case_counts import failures
from agenteval.compare.statistics.decision import Decision
from agenteval.compare.statistics.model import CaseRuns, MetricRuns
from agenteval.results.comparison import CaseNote, ComparedCase, History


def annotated(
    sides: Sides,
    cases: Iterable[ComparedCase],
    decision: Decision,
    metrics: Sequence[MetricRuns],
    *,
    by_mean: bool,
) -> list[ComparedCase]:
    """Return the cases with their change and notes.

    Where a mean dropped significantly, the cases whose scores dropped with it count as regressed.
    """
    gating = [item for item in decision.metrics if item.gating]
    marks = _Marks(
        regressed=frozenset(decision.regressed_cases),
        suspects=frozenset(finding.count.case_id for item in gating for finding in item.evidence.suspects),
        flaky=frozenset(case_id for item in gating for case_id in item.annotations.flaky),
        quarantined=sides.quarantined,
        by_mean=by_mean,
    )
    histories = _histories(metrics)
    return [_marked(case, marks, histories.get(case.id)) for case in cases]


@dataclass(frozen=True)
class _Marks:
    """Case ids by kind of finding."""

    regressed: frozenset[str]
    suspects: frozenset[str]
    flaky: frozenset[str]
    quarantined: frozenset[str]
    by_mean: bool


def _marked(case: ComparedCase, marks: _Marks, history: History | None) -> ComparedCase:
    fell = case.change == "regressed"
    change = case.change
    if case.id in marks.regressed:
        change = "regressed"
    elif fell and (case.id in marks.quarantined or not marks.by_mean):
        change = "unchanged"
    notes: list[CaseNote] = []
    if case.id in marks.quarantined:
        notes.append("quarantined")
    elif change != "regressed" and (fell or case.id in marks.suspects):
        notes.append("suspect")
    if case.id in marks.flaky:
        notes.append("flaky")
    worth_telling = notes or change == "regressed"
    return case.model_copy(update={"change": change, "notes": notes, "history": history if worth_telling else None})


def _histories(metrics: Iterable[MetricRuns]) -> dict[str, History]:
    """Return the baseline history of each case, under the metric that it failed most often."""
    found: dict[str, History] = {}
    for metric in metrics:
        for case in metric.cases:
            history = _history(case) if metric.gating else None
            if history and (case.case_id not in found or history.pass_rate < found[case.case_id].pass_rate):
                found[case.case_id] = history
    return found


def _history(case: CaseRuns) -> History | None:
    scores = [score for run in case.baseline for score in run]
    if not scores or case.threshold is None:
        return None
    failed = failures(tuple(scores), case.threshold)
    return History(
        runs=sum(bool(run) for run in case.baseline), iterations=len(scores), pass_rate=1 - failed / len(scores)
    )
