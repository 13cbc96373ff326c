"""Which failing cases fail the gate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.runs import case, results

from agenteval.compare.gate import GatePolicy, decide_gate
from agenteval.compare.gate_failures import Failures, Required, failures_of
from agenteval.results.case import CaseStatus
from agenteval.results.comparison import (
    BaselineInfo,
    CaseChange,
    CaseMove,
    CaseNote,
    CaseProof,
    ComparedCase,
    ComparedMetric,
    Comparison,
    FailedOf,
    RunVerdict,
    Stage,
)
from agenteval.results.model import Results

NOT_REPEATED = "1 case that passed in the baseline fails now and did not run again: b"
NOT_PROVEN = "1 case failed in the first run, without a proven regression"


def suspected(reruns: int) -> CaseProof:
    none = FailedOf(failed=0, of=0)
    again = FailedOf(failed=0, of=reruns)
    first = FailedOf(failed=1, of=1)
    return CaseProof(id="agent.yaml::b", metric="m", pool=none, first=first, current=again, control=none)


def failing(
    change: CaseChange,
    before: CaseStatus | None = "passed",
    *,
    notes: tuple[CaseNote, ...] = (),
    stage: Stage | None = "cases",
    reruns: int | None = None,
) -> Results:
    """A run whose only failing case is ``b``, with its comparison.

    Args:
        change: what the comparison says about the case.
        before: its status in the baseline.
        notes: further words of the comparison.
        stage: what the comparison rests on.
        reruns: how often the case ran again; ``None`` if it was not suspicious.
    """
    now = results(case("a", "passed"), case("b", "failed"))
    common: dict[str, Any] = {"score_before": 1.0, "score_after": 0.0, "status_after": "failed"}
    compared = ComparedCase(
        id="agent.yaml::b", name="b", change=change, status_before=before, notes=list(notes), **common
    )
    comparison = Comparison(
        baseline=BaselineInfo(run_id="then", created_at="2030-01-01T00:00:00Z", ref="refs/heads/main"),
        verdict="unchanged",
        metrics=[],
        cases=[compared],
        policy={"name": "statistics", "reason": ""},
        stage=stage,
        proofs=[] if reruns is None else [suspected(reruns)],
    )
    return now.model_copy(update={"comparison": comparison})


@pytest.mark.parametrize(
    ("run", "kind", "status", "said"),
    [
        (failing("new", None), "counting", 1, "1 of 2 cases failed"),
        (failing("changed"), "counting", 1, "1 of 2 cases failed"),
        (failing("regressed"), "counting", 1, "1 of 2 cases failed"),
        (failing("unchanged", "error"), "counting", 1, "1 of 2 cases failed"),
        (failing("unchanged", "failed"), "known", 0, "1 of 2 cases fails as it does on main"),
        (failing("unchanged", stage=None), "not_repeated", 1, NOT_REPEATED),
        (failing("unchanged", notes=("suspect",), reruns=0), "not_repeated", 1, NOT_REPEATED),
        (failing("unchanged", notes=("suspect",), reruns=3), "not_proven", 0, NOT_PROVEN),
        (failing("unchanged"), "not_proven", 0, NOT_PROVEN),
        (failing("regressed", notes=("accepted",)), "accepted", 0, "1 of 2 cases fails, which was accepted (b)"),
    ],
)
def test_a_failing_case_counts_if_it_is_new_or_proven_broken(run: Results, kind: str, status: int, said: str) -> None:
    found = failures_of(run, Required(), ())
    assert found is not None
    assert replace(found, broke=()) == Failures(**{kind: ("b",)})
    assert set(found.broke) <= set(found.counting)
    gate = decide_gate(run, GatePolicy())
    assert gate.exit_status == status
    assert said in gate.headline


@pytest.mark.parametrize(
    ("required", "status"),
    [
        (Required(strict=True), 1),
        (Required(patterns=("b*",)), 1),
        (Required(patterns=("agent.yaml::b",)), 1),
        (Required(patterns=("c",)), 0),
    ],
)
def test_a_required_case_fails_the_gate_whatever_the_baseline_says(required: Required, status: int) -> None:
    gate = decide_gate(failing("unchanged", "failed"), GatePolicy(required=required))
    assert gate.exit_status == status


@pytest.mark.parametrize(
    ("now", "before", "verdict", "kind"),
    [
        (3, 0, "regressed", "counting"),
        (2, 0, "regressed", "not_proven"),
        (3, 1, "regressed", "not_proven"),
        (3, 0, "unchanged", "not_proven"),
    ],
)
def test_a_case_that_breaks_with_a_proven_mean_counts(now: int, before: int, verdict: RunVerdict, kind: str) -> None:
    run = failing("unchanged")
    assert run.comparison is not None
    sides = {"baseline_failures": FailedOf(failed=before, of=3), "current_failures": FailedOf(failed=now, of=3)}
    moved = [CaseMove.model_validate({"id": "agent.yaml::b", "baseline": 1.0, "current": 0.0, **sides})]
    metric = ComparedMetric(
        id="m", n=2, baseline=1.0, current=0.5, difference=-0.5, verdict=verdict, moved=moved, reason=""
    )
    comparison = run.comparison.model_copy(update={"metrics": [metric]})
    found = failures_of(run.model_copy(update={"comparison": comparison}), Required(), ())
    assert found == Failures(**{kind: ("b",)})


def test_without_a_comparison_every_failing_case_fails_the_gate() -> None:
    run = results(case("a", "failed"))
    assert failures_of(run, Required(), ()) is None
    assert decide_gate(run, GatePolicy()).headline == "1 of 1 case failed"


def test_quarantine_comes_before_required_cases() -> None:
    assert failures_of(failing("regressed"), Required(strict=True), {"agent.yaml::b"}) == Failures()
