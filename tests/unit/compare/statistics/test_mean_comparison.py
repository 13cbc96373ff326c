"""One comparison of means."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.unit.compare.statistics.designs import TENTHS, case, copies, metric, metrics, table_of
from tests.unit.core.test_distributions import t_by_angles

from agenteval.compare.statistics.mean_comparison import Aggregate, compare_means
from agenteval.compare.statistics.means import detectable
from agenteval.compare.statistics.model import CaseRuns, MetricRuns
from agenteval.compare.statistics.parameters import GateParameters

PARAMETERS = GateParameters()


def compare(*cases: CaseRuns, step: float = 1.0) -> Aggregate:
    return compare_means(table_of(cases), step, (1, 1), PARAMETERS)


def test_means_and_sizes() -> None:
    found = compare(case("a", "110", "111", "100"), case("b", "000", "", "011"), case("c", "111", "111", "111"))
    assert found.current_mean == pytest.approx((2 / 3 + 0 + 1) / 3)
    assert found.baseline_mean == pytest.approx((2 / 3 + 2 / 3 + 1) / 3)
    assert found.difference == pytest.approx(-2 / 9)
    assert (found.cases, found.units, found.current_runs, found.baseline_runs, found.iterations) == (3, 3, 1, 2, 3)


def test_a_run_that_no_compared_case_has_does_not_count() -> None:
    assert compare(case("a", "1", "", "1"), case("b", "1", "", "0")).baseline_runs == 1


@given(found=st.one_of(metrics(losses=True), metrics(scores=TENTHS, losses=True, clusters=True)))
def test_the_difference_is_that_of_the_means(found: MetricRuns) -> None:
    assume(found.compared)
    aggregate = compare(*found.compared, step=found.step)
    assert aggregate.difference == pytest.approx(aggregate.current_mean - aggregate.baseline_mean)


UNEQUAL = [("1", "111"), ("0", "111"), ("0", "110"), ("1", "101"), ("0", "100"), ("1", "111")]


def test_different_numbers_of_iterations_are_compared_by_the_paired_t_test() -> None:
    found = compare(*(case(str(n), *pair) for n, pair in enumerate(UNEQUAL)))
    differences = np.array([0, -1, -2 / 3, 1 / 3, -1 / 3, 0])
    t = differences.mean() / (differences.std(ddof=1) / math.sqrt(6))
    assert found.method.startswith("paired t test")
    assert found.p_low == pytest.approx(t_by_angles(float(t), 5))
    assert found.p_high == pytest.approx(1 - found.p_low)


def test_the_paired_t_test_is_over_units() -> None:
    cases = [case(str(n), *pair, cluster=str(n // 2)) for n, pair in enumerate(UNEQUAL)]
    sums = np.array([-1, -1 / 3, -1 / 3])
    t = sums.sum() / 6 / (math.sqrt(float(((sums - sums.mean()) ** 2).sum()) * 3 / 2) / 6)
    assert compare(*cases).p_low == pytest.approx(t_by_angles(float(t), 2))


def test_lost_iterations_do_not_change_the_test() -> None:
    cases = [*copies(6, "111", "111", "110"), case("lost", "1", "111", "11")]
    assert "permutation of run labels" in compare(*cases).method


def test_all_cases_broke_the_same_way_with_different_iterations() -> None:
    found = compare(*copies(10, "0", "111"))
    assert found.p_low < 1e-4
    assert found.p_high == pytest.approx(1 - found.p_low)


def test_nothing_differs_with_different_iterations() -> None:
    found = compare(*copies(10, "1", "111"))
    assert (found.p_low, found.p_high) == (1.0, 1.0)


def test_differences_that_cancel_out_with_different_iterations() -> None:
    found = compare(*copies(5, "1", "000"), *copies(5, "0", "111", prefix="worse"))
    assert (found.p_low, found.p_high) == (0.5, 0.5)


def test_one_case_proves_nothing() -> None:
    assert compare(case("a", "000", "111", "111")).p_low > PARAMETERS.screen
    assert compare(case("a", "0", "111", "111")).p_low > PARAMETERS.alpha_aggregate


def test_the_method_names_the_number_of_labelings() -> None:
    assert compare(*copies(3, "0", "1", "1")).method == "exact permutation of run labels, 27 labelings"
    assert compare(*copies(20, "0", "1")).method == "permutation of run labels, 10000 random labelings"


def test_the_base_commits_single_run_hides_more_than_the_mean_of_the_pool() -> None:
    found = metric(*copies(30, "110", *("111",) * 5), *copies(30, "111", *("110",) * 5, prefix="better"))
    head, base = detectable(found, "rerun", PARAMETERS), detectable(found, "against-base", PARAMETERS)
    assert head is not None
    assert base is not None
    assert 1.2 * head < base < 2 * head
    alone = replace(found, cases=tuple(replace(c, baseline=c.baseline[:1]) for c in found.cases))
    twice = replace(PARAMETERS, alpha_single=PARAMETERS.alpha_aggregate, power=math.sqrt(PARAMETERS.power))
    assert detectable(alone, "against-base", PARAMETERS) == pytest.approx(detectable(alone, "rerun", twice))


def test_without_cases_no_drop_is_detectable() -> None:
    assert detectable(metric(), "rerun", PARAMETERS) is None
