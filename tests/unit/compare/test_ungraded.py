"""A case that passed before and fails by a metric without earlier scores was compared with nothing."""

from __future__ import annotations

from datetime import date

import pytest
from tests.unit.compare.gate_runs import compared, past, policy
from tests.unit.runs import broken, case, iteration, results, score, turn

from agenteval.compare.gate import GatePolicy, decide_gate
from agenteval.compare.policy import ComparePolicy, Quarantine
from agenteval.results.case import CaseResult, CaseStatus
from agenteval.results.model import Results

PRINTS = {"old": {"m": "1", "f1": "1"}, "new": {"m": "2", "f1": "1"}}
SAID = "1 case that passed in the baseline fails by 'm', which no earlier run has scored in the same way: a"


def scores(name: str, m: float, f1: float = 1.0, status: CaseStatus = "passed") -> CaseResult:
    return case(name, status, [{"m": m, "f1": f1}] * 3)


def run(*cases: CaseResult, rules: str = "old") -> Results:
    """A run of five further cases that always pass, on another branch than the baseline."""
    others = [scores(name, 1.0) for name in "vwxyz"]
    own = {item.name: PRINTS[rules] for item in cases}
    made = results(*cases, *others, metrics=dict.fromkeys("vwxyz", PRINTS["old"]) | own)
    return made.model_copy(
        update={"run": made.run.model_copy(update={"commit": "b" * 40, "ref": "refs/heads/change"})}
    )


THEN = past(3, [scores(name, 1.0) for name in "avwxyz"], metrics=dict.fromkeys("avwxyz", PRINTS["old"]))


def points(now: Results, then: Results = THEN, chosen: ComparePolicy | None = None) -> list[str]:
    comparison = compared(now, then, chosen)
    gate = decide_gate(now.model_copy(update={"comparison": comparison}), GatePolicy())
    found = [point.text for point in comparison.unproven if point.what == "metric"]
    assert not found or (comparison.verdict, gate.verdict, gate.exit_status) == ("unproven", "unproven", 1)
    assert all(text in gate.reasons for text in found)
    return found


def test_a_case_that_fails_by_a_changed_metric_is_not_green() -> None:
    assert points(run(scores("a", 0.0, status="failed"), rules="new")) == [SAID]


def test_a_case_that_fails_by_an_added_metric_is_not_green() -> None:
    then = past(3, [case(name, "passed", [{"f1": 1.0}] * 3) for name in "avwxyz"], metrics={"a": {"f1": "1"}})
    assert points(run(scores("a", 0.0, status="failed")), then) == [SAID]


def test_a_case_that_fails_by_a_metric_whose_judge_failed_before_is_not_green() -> None:
    then = past(
        3,
        [
            case("a").model_copy(update={"iterations": [iteration("passed", turn(score("f1"), broken("m")))] * 3}),
            *(scores(name, 1.0) for name in "vwxyz"),
        ],
        metrics=dict.fromkeys("avwxyz", PRINTS["old"]),
    )
    assert points(run(scores("a", 0.0, status="failed")), then) == [SAID]


@pytest.mark.parametrize(
    "now",
    [
        run(scores("a", 1.0), rules="new"),
        # This metric is compared, so the case is suspicious.
        run(scores("a", 0.0, status="failed")),
        run(scores("a", 1.0, 0.0, status="failed"), rules="new"),
        # A minority of its iterations fails by the changed metric alone.
        run(case("a", "failed", [{"m": 0.0, "f1": 1.0}, *[{"m": 1.0, "f1": 0.0}] * 2]), rules="new"),
        # A new case decides by its own result.
        run(scores("b", 0.0, status="failed"), scores("a", 1.0)),
    ],
)
def test_what_was_compared_is_no_such_point(now: Results) -> None:
    assert points(now) == []


def test_a_case_that_failed_before_is_none() -> None:
    before = [scores("a", 0.0, status="failed"), *(scores(name, 1.0) for name in "vwxyz")]
    then = past(3, before, metrics=dict.fromkeys("avwxyz", PRINTS["old"]))
    assert points(run(scores("a", 0.0, status="failed"), rules="new"), then) == []


def test_quarantined_cases_and_simple_rules_have_none() -> None:
    now = run(scores("a", 0.0, status="failed"), rules="new")
    held = policy(quarantine=(Quarantine("a", date(2026, 12, 31)),))
    assert points(now, chosen=held) == []
    assert points(now, chosen=ComparePolicy(name="mean-drop")) == []


def test_the_base_branch_is_not_blamed_for_the_rules_that_a_merge_has_accepted() -> None:
    now = run(scores("a", 0.0, status="failed"), rules="new")
    merged = now.model_copy(update={"run": now.run.model_copy(update={"ref": THEN.run.ref})})
    assert points(merged) == []
