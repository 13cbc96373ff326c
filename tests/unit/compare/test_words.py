"""The sentences about a decision: one for each case, with the numbers of the test that decided."""

from __future__ import annotations

from agenteval.compare.compared import Compared
from agenteval.compare.regression.model import CaseFinding, Decision, Failures
from agenteval.compare.words import words_of


def broken(case_id: str, metric: str, failed: int = 9) -> CaseFinding:
    return CaseFinding(
        metric=metric,
        case_id=case_id,
        pool=Failures(0, 9),
        first=Failures(3, 3),
        current=Failures(failed, 9),
        control=Failures(0, 9),
        q=0.0001,
        limit=0.001,
        proven=True,
    )


def test_a_case_that_several_metrics_found_is_named_once() -> None:
    found = (broken("a", "bleu", 8), broken("a", "rouge"), broken("b", "bleu"), broken("b", "rouge", 7))
    decision = Decision(verdict="regressed", stage="cases", metrics=(), cases=found)
    compared = Compared(cases={"a": "night return"}, control="0123456789ab")
    said = words_of(decision, compared)
    assert said["headline"] == "'night return' and 1 more case broke"
    assert said["reason"] == (
        "Regressed: 'night return' fails 9 of 9 re-runs, 0 of 9 on 0123456 beside it; "
        "'b' fails 9 of 9 re-runs, 0 of 9 on 0123456 beside it"
    )
