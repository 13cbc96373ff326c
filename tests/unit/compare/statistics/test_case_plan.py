"""The cases to re-run, and the conclusions from their re-runs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.compare.statistics.designs import case, copies, run

from agenteval.compare.statistics.case_confirmation import confirm_cases
from agenteval.compare.statistics.case_plan import CasePlan, plan_cases
from agenteval.compare.statistics.model import CaseRuns
from agenteval.compare.statistics.parameters import Confirm, GateParameters

PARAMETERS = GateParameters()
POOL = ("111",) * 5
# Runs of a case that fails now and then, so that it could have been a candidate.
WOBBLY = ("110", "101", "111", "011", "110")


def plan(*cases: CaseRuns, confirm: Confirm = "rerun", alpha: float = 0.01) -> CasePlan:
    return plan_cases(cases, confirm, alpha, PARAMETERS)


def broken(count: int = 1, reruns: str = "00000000", control: str = "") -> list[CaseRuns]:
    cases = copies(count, "000", *POOL, prefix="broken")
    return [replace(c, reruns=run(reruns), control_reruns=run(control)) for c in cases]


def short(count: int = 1) -> list[CaseRuns]:
    """Cases that broke, with less to prove it by."""
    return copies(count, "0", *"11111", prefix="short")


def test_the_family_is_the_cases_that_could_have_been_candidates() -> None:
    found = plan(*broken(), *copies(50, "111", *POOL), *copies(7, "101", *WOBBLY, prefix="wobbly"))
    # The broken one with 3 failures, and seven with 5 + 1; those without a failure could not.
    assert found.testable == 8
    assert [count.case_id for count in found.reruns] == ["broken-000"]


def test_a_larger_family_takes_more_reruns() -> None:
    few, many = plan(*short()), plan(*short(5))
    assert few.correlation == many.correlation
    assert (few.testable, many.testable) == (1, 5)
    assert 0 < few.repeats < many.repeats


def test_a_smaller_error_rate_takes_more_reruns() -> None:
    assert 0 < plan(*short()).repeats < plan(*short(), alpha=0.002).repeats


def test_where_no_number_of_reruns_suffices_nothing_is_run_again() -> None:
    found = plan(*broken(), alpha=1e-9)
    assert (found.reruns, found.repeats) == ((), 0)
    assert [count.case_id for count in found.suspects] == ["broken-000"]


def test_beside_the_base_commit_more_candidates_take_more_reruns() -> None:
    one, many = plan(*broken(), confirm="against-base"), plan(*broken(12), confirm="against-base")
    assert one.repeats < many.repeats
    assert len(many.reruns) == 12


def test_beside_the_base_commit_only_so_many_are_run_again_as_can_be_proved() -> None:
    # Runs of one kind each: a correlation that leaves room for one proof.
    alike = copies(10, "111", *(("111", "000") * 2), "111", prefix="alike")
    found = plan(*broken(6), *alike, confirm="against-base", alpha=0.2)
    assert found.correlation > 0.5
    assert 0 < len(found.reruns) < 6
    assert len(found.reruns) + len(found.suspects) == 6


def test_most_suspicious_first() -> None:
    weaker = case("a weaker one", "000", "101", "110", "111", "011", "111")
    assert [count.case_id for count in plan(weaker, *broken()).reruns] == ["broken-000", "a weaker one"]


def test_the_most_changed_case_does_not_affect_the_correlation() -> None:
    wobbly = copies(8, "111", "110")
    calm = plan(*wobbly, confirm="against-base")
    assert plan(*wobbly, case("broken", "000", "111"), confirm="against-base").correlation == calm.correlation


def test_a_pool_of_one_run_has_no_correlation_of_its_own() -> None:
    wobbly = copies(8, "000", "111")
    assert plan(*wobbly).correlation == PARAMETERS.prior_correlation
    assert plan(*wobbly, confirm="against-base").correlation > PARAMETERS.prior_correlation


@pytest.mark.parametrize("confirm", ["rerun", "against-base", "both"])
def test_the_number_of_tests_decides_what_the_reruns_prove(confirm: Confirm) -> None:
    cases = broken(control="11111111")
    found = plan(*cases, confirm=confirm)
    by_id = {c.case_id: c for c in cases}
    assert len(confirm_cases(found, by_id, confirm, PARAMETERS).regressed) == 1
    crowded = replace(found, testable=10_000, reruns=found.reruns, alpha=found.alpha)
    expected = 1 if confirm == "against-base" else 0
    assert len(confirm_cases(crowded, by_id, confirm, PARAMETERS).regressed) == expected


def test_with_confirm_base_the_correction_counts_rerun_cases() -> None:
    cases = broken(12, control="11111111")
    found = replace(plan(*broken(1), confirm="against-base"), reruns=plan(*cases, confirm="against-base").reruns)
    # So few re-runs suffice for one case and not for twelve.
    assert confirm_cases(found, {c.case_id: c for c in cases}, "against-base", PARAMETERS).regressed == ()


def test_only_the_planned_reruns_count() -> None:
    repeats = plan(*broken()).repeats
    cases = broken(reruns="0" * repeats + "1" * 5)
    finding = confirm_cases(plan(*cases), {c.case_id: c for c in cases}, "rerun", PARAMETERS).regressed[0]
    assert (finding.rerun_failures, finding.repeats) == (repeats, repeats)


def test_with_both_the_larger_p_is_given() -> None:
    cases = broken(control="11111111")
    by_id = {c.case_id: c for c in cases}
    found = plan(*cases, confirm="both")
    p = {
        confirm: confirm_cases(found, by_id, confirm, PARAMETERS).regressed[0].p
        for confirm in ("rerun", "against-base", "both")
    }
    assert p["both"] == max(p["rerun"] or 0, p["against-base"] or 0)
