"""Adds the result of the comparison and the baseline history to each case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agenteval.compare.regression.model import Decision
from agenteval.compare.sides import Sides
from agenteval.core.statistics import ROUNDING
from agenteval.results.comparison import CaseChange, CaseNote, ComparedCase, History

# A case is flaky if its pass rate is between 0.1 and 0.9 in at least so many iterations of the baseline.
_FLAKY_RANGE = 0.4
_FLAKY_ITERATIONS = 10
# The changes whose answers reports show.
_SHOWN = frozenset({"regressed", "improved"})


def annotated(sides: Sides, cases: Iterable[ComparedCase], decision: Decision) -> list[ComparedCase]:
    """Return the cases with their change and notes.

    Only a case that is proven to fail more often is marked as regressed; a proven mean marks no case.
    """
    is_rise = decision.verdict == "improved"
    proven = {finding.case_id for finding in decision.cases if finding.proven}
    marks = _Marks(
        changed=proven,
        suspects=set() if is_rise else {finding.case_id for finding in decision.cases} - proven,
        quarantined=sides.quarantined,
        change="improved" if is_rise else "regressed",
    )
    histories = _histories(sides)
    return [_marked(case, marks, histories.get(case.id)) for case in cases]


@dataclass(frozen=True)
class _Marks:
    """Case ids by kind of finding, and the change of the proven ones."""

    changed: set[str]
    suspects: set[str]
    quarantined: frozenset[str]
    change: CaseChange


def _marked(case: ComparedCase, marks: _Marks, history: History | None) -> ComparedCase:
    change: CaseChange = "unchanged" if case.change == "regressed" else case.change
    if case.id in marks.changed:
        change = marks.change
    notes: list[CaseNote] = []
    if case.id in marks.quarantined:
        notes.append("quarantined")
    elif case.id in marks.suspects:
        notes.append("suspect")
    if history is not None and _is_flaky(history):
        notes.append("flaky")
    update = {
        "change": change,
        "notes": notes,
        "history": history if notes or change == "regressed" or case.status_after != "passed" else None,
        "answers": case.answers if change in _SHOWN or "suspect" in notes or _failed_now(case) else [],
    }
    return case.model_copy(update=update)


def _failed_now(case: ComparedCase) -> bool:
    return case.status_before == "passed" and case.status_after != "passed"


def _is_flaky(history: History) -> bool:
    return history.iterations >= _FLAKY_ITERATIONS and abs(history.pass_rate - 0.5) <= _FLAKY_RANGE + ROUNDING


def _histories(sides: Sides) -> Mapping[str, History]:
    """Return the history of each case in the pool, under the gating metric that it failed most often."""
    found: dict[str, History] = {}
    for case_id in sides.cases:
        for metric in sides.gating:
            history = _history(sides, case_id, metric)
            if history and (case_id not in found or history.pass_rate < found[case_id].pass_rate):
                found[case_id] = history
    return found


def _history(sides: Sides, case_id: str, metric: str) -> History | None:
    grade = sides.grades.get((case_id, metric))
    if grade is None or grade.threshold is None:
        return None
    runs = [
        [score for score in run.get(case_id, {}).get(metric, ()) if score is not None] for run in sides.earlier.scores
    ]
    scores = [score for run in runs for score in run]
    if not scores:
        return None
    passed = sum(score >= grade.threshold - ROUNDING for score in scores)
    return History(runs=sum(map(bool, runs)), iterations=len(scores), pass_rate=passed / len(scores))
