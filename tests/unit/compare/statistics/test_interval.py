"""The interval of a difference and the detectable drop."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.compare.statistics.designs import TENTHS, case, copies, metrics, table_of

from agenteval.compare.statistics.interval import (
    Precision,
    cluster_error,
    detectable_drop,
    guarded_error,
    interval,
    precision,
)
from agenteval.compare.statistics.model import MetricRuns
from agenteval.compare.statistics.parameters import GateParameters

PARAMETERS = GateParameters()


def test_without_clusters_it_is_the_error_of_a_mean() -> None:
    cases = [case("a", "111", "110"), case("b", "000", "111"), case("c", "100", "100"), case("d", "101", "000")]
    table = table_of(cases)
    differences = [1 / 3, -1.0, 0.0, 2 / 3]
    assert table.differences == pytest.approx(np.array(differences))
    assert cluster_error(table) == pytest.approx(np.std(differences, ddof=1) / math.sqrt(4))


def test_cases_of_a_cluster_add_up_before_they_are_squared() -> None:
    pairs = [("0", "1"), ("1", "1"), ("0", "1"), ("1", "0"), ("1", "1"), ("0", "1")]
    cases = [case(str(n), *pair, cluster=str(n // 2)) for n, pair in enumerate(pairs)]
    # Differences -1 0 | -1 1 | 0 -1, mean -1/3; sums of deviations -1/3, 2/3, -1/3.
    assert cluster_error(table_of(cases)) == pytest.approx(math.sqrt((1 + 4 + 1) / 9 * 3 / 2) / 6)


def test_the_guard_is_one_step_in_one_iteration_up_and_down() -> None:
    table = table_of(copies(10, "111", "111", "111"))
    assert cluster_error(table) == 0
    assert guarded_error(table, 1.0) == pytest.approx(math.sqrt(2 / 9 * 10 / 9) / 10)
    assert guarded_error(table, 0.1) == pytest.approx(guarded_error(table, 1.0) / 10)


def test_nothing_differs_and_still_there_is_doubt() -> None:
    low, high = interval(table_of(copies(10, "111", "111")), 1.0, 0.95)
    assert low == pytest.approx(-high)
    # t(0.975, 9) = 2.2622 times sqrt(2/9 * 10/9) / 10.
    assert high == pytest.approx(2.2622 * 0.049690, abs=1e-4)


def test_one_case_excludes_nothing() -> None:
    assert interval(table_of([case("a", "1", "1")]), 1.0, 0.95) == (-1.0, 1.0)


@given(found=st.one_of(metrics(), metrics(scores=TENTHS, clusters=True, losses=True)))
def test_the_interval_holds_the_difference(found: MetricRuns) -> None:
    if not found.compared:
        return
    table = table_of(found.compared)
    low, high = interval(table, found.step, 0.95)
    narrow_low, narrow_high = interval(table, found.step, 0.8)
    assert -1 <= low <= narrow_low <= float(table.differences.mean()) <= narrow_high <= high <= 1


@given(found=metrics(most_runs=1, clusters=True))
def test_swapping_the_sides_mirrors_the_interval(found: MetricRuns) -> None:
    swapped = [replace(c, current=c.baseline[0], baseline=(c.current,)) for c in found.compared]
    low, high = interval(table_of(found.compared), 1.0, 0.95)
    assert interval(table_of(swapped), 1.0, 0.95) == pytest.approx((-high, -low))


PRECISION = Precision(standard_error=0.02, cases=100, units=100, moved=20, iterations=3, binary=True)


def test_the_detectable_drop_is_a_fixed_point() -> None:
    drop = detectable_drop(PRECISION, PARAMETERS)
    moved = 20 + 100 * (1 - (1 - drop) ** 3)
    error = math.sqrt(0.02**2 + drop * (1 - drop) / 300)
    # Quantiles of t with some 33 degrees of freedom: 1.806 (0.96) and 0.853 (0.8).
    assert 30 < moved - 1 < 40
    assert drop == pytest.approx((1.806 + 0.853) * error, rel=0.005)


def test_it_is_never_below_the_smallest_effect() -> None:
    tiny = replace(PRECISION, standard_error=1e-5, binary=False)
    assert PARAMETERS.min_effect < detectable_drop(tiny, PARAMETERS) < PARAMETERS.min_effect + 1e-4


@given(
    error=st.floats(0.001, 0.2),
    growth=st.floats(1.1, 3),
    cases=st.integers(10, 500),
    binary=st.booleans(),
)
def test_more_noise_hides_larger_drops(error: float, growth: float, cases: int, binary: bool) -> None:
    quiet = replace(PRECISION, standard_error=error, cases=cases, units=cases, moved=cases // 4, binary=binary)
    noisy = replace(quiet, standard_error=error * growth)
    # Degrees of freedom in steps of one half leave a little roughness.
    assert detectable_drop(quiet, PARAMETERS) <= detectable_drop(noisy, PARAMETERS) * 1.01
    assert detectable_drop(noisy, PARAMETERS) <= 1


def test_more_power_needs_a_larger_drop() -> None:
    drops = [detectable_drop(PRECISION, replace(PARAMETERS, power=power)) for power in (0.5, 0.8, 0.95)]
    assert drops == sorted(drops)
    assert drops[0] < drops[2]


def test_precision_counts_changed_units() -> None:
    cases = [*copies(5, "111", "111"), *copies(2, "110", "111", prefix="moved"), case("x", "000", "111", cluster="y")]
    found = precision(table_of(cases), 1.0)
    assert (found.cases, found.units, found.moved, found.iterations, found.binary) == (8, 8, 3, 3, True)
