"""p-values of single cases, compared with a slow enumeration, and their error rates."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.test_distributions import urn

from agenteval.compare.statistics.case_tables import CaseDesign, candidate_totals, control_table, rerun_table
from agenteval.core.statistics import fisher_p

DROP = 0.5
DESIGNS = [
    CaseDesign((3, 3, 3), 3),
    CaseDesign((1, 1, 1, 1, 1), 1),
    CaseDesign((2, 3), 3),
    CaseDesign((1, 1), 2),
    CaseDesign((5, 5), 5),
]


def fell(before: int, n_before: int, after: int, n_after: int) -> bool:
    return Fraction(after, n_after) - Fraction(before, n_before) >= Fraction(1, 2)


def slow_p(
    design: CaseDesign, repeats: int, correlation: Fraction, outcome: tuple[int, int, int], rate: Fraction
) -> float:
    """P(as extreme, and a confirmed candidate | a testable total) at one failure rate, run by run."""
    runs = [*design.baseline, design.current, repeats]
    chances = [urn(iterations, rate, correlation) for iterations in runs]
    n_before, n_after = sum(design.baseline), design.current + repeats
    totals = {
        before + now
        for before in range(n_before + 1)
        for now in range(design.current + 1)
        if fell(before, n_before, now, design.current)
    }

    def fisher(before: int, now: int, again: int) -> float:
        return fisher_p(before, n_before, now + again, n_after)

    hit = given_testable = Fraction(0)
    for failures in itertools.product(*(range(iterations + 1) for iterations in runs)):
        *baseline, now, again = failures
        before = sum(baseline)
        chance = Fraction(1)
        for run_chances, failed in zip(chances, failures, strict=True):
            chance *= run_chances[failed]
        if before + now in totals:
            given_testable += chance
        confirmed = fell(before, n_before, now, design.current) and fell(before, n_before, again, repeats)
        if confirmed and fisher(before, now, again) <= fisher(*outcome) + 1e-12:
            hit += chance
    return float(hit / given_testable)


@pytest.mark.parametrize("design", DESIGNS[:4])
@pytest.mark.parametrize("correlation", [Fraction(0), Fraction(1, 10), Fraction(3, 10)])
def test_no_failure_rate_gives_more_than_the_p_of_the_table(design: CaseDesign, correlation: Fraction) -> None:
    repeats = 3
    table = rerun_table(design, repeats, float(correlation), DROP)
    outcome = 0, design.current, repeats
    slow = [slow_p(design, repeats, correlation, outcome, Fraction(n, 40)) for n in range(1, 40)]
    # The grid of the table is finer, so it may find a little more.
    assert max(slow) <= table.p(*outcome) * (1 + 1e-3)
    assert table.p(*outcome) <= max(slow) * 1.02


def test_p_of_an_outcome_in_the_middle() -> None:
    design, outcome = CaseDesign((2, 2), 2), (1, 2, 3)
    slow = max(slow_p(design, 3, Fraction(1, 10), outcome, Fraction(n, 40)) for n in range(1, 40))
    assert rerun_table(design, 3, 0.1, DROP).p(*outcome) == pytest.approx(slow, rel=0.02)


def test_outcomes_that_fisher_cannot_tell_apart_have_the_same_p() -> None:
    table = rerun_table(CaseDesign((3, 3, 3), 3), 3, 0.1, DROP)
    assert table.p(0, 2, 3) == table.p(0, 3, 2) > table.p(0, 3, 3)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("correlation", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("repeats", [3, 5])
def test_one_more_failure_never_raises_p(design: CaseDesign, correlation: float, repeats: int) -> None:
    table = rerun_table(design, repeats, correlation, DROP)
    for before, now, again in table.p_values:
        p = table.p(before, now, again)
        if now < design.current:
            assert table.p(before, now + 1, again) <= p
        if again < repeats:
            assert table.p(before, now, again + 1) <= p


@pytest.mark.parametrize("design", DESIGNS)
def test_correlation_makes_proof_harder(design: CaseDesign) -> None:
    outcome = 0, design.current, 4
    found = [rerun_table(design, 4, correlation, DROP).p(*outcome) for correlation in (0.0, 0.1, 0.2, 0.4)]
    assert found == sorted(found)


@pytest.mark.parametrize("design", DESIGNS)
def test_more_reruns_prove_more(design: CaseDesign) -> None:
    found = [rerun_table(design, repeats, 0.1, DROP).p(0, design.current, repeats) for repeats in range(3, 9)]
    assert found == sorted(found, reverse=True)


def test_an_outcome_without_a_candidate_is_never_significant() -> None:
    table = rerun_table(CaseDesign((3, 3), 3), 3, 0.1, DROP)
    assert table.p(3, 2, 3) == 1.0
    assert table.p(0, 3, 1) == 1.0


def test_totals_that_a_candidate_can_have() -> None:
    # 3 of 3 fail now: up to 4 of 9 before. 2 of 3 fail now: up to 1 of 9.
    assert candidate_totals(CaseDesign((3, 3, 3), 3), DROP) == {2, 3, 4, 5, 6, 7}


@given(
    repeats=st.integers(3, 8),
    correlation=st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(3, 10)]),
    rate=st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=50),
    alpha=st.sampled_from([0.001, 0.01, 0.05]),
)
@settings(deadline=None)
def test_side_by_side_reruns_keep_their_error_rate(
    repeats: int, correlation: Fraction, rate: Fraction, alpha: float
) -> None:
    table = control_table(repeats, float(correlation), DROP)
    chances = urn(repeats, rate, correlation)
    rejected = sum(
        chances[control] * chances[current]
        for control in range(repeats + 1)
        for current in range(repeats + 1)
        if table.p(control, current) <= alpha
    )
    assert float(rejected) <= alpha * 1.001


def test_side_by_side_reruns_without_correlation_at_their_peak() -> None:
    # All of 4 against none of 4: p^4 (1 - p)^4, largest at one half.
    assert control_table(4, 0.0, DROP).p(0, 4) == pytest.approx(0.5**8, rel=1e-3)
