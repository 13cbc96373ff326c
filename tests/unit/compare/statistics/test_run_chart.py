"""The run chart."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.unit.compare.statistics.designs import case, copies, table_of

from agenteval.compare.statistics.parameters import GateParameters
from agenteval.compare.statistics.run_chart import run_chart_p

PARAMETERS = GateParameters()
BASELINE = ("1111", "1110", "1111", "1100", "1111")


def test_by_hand() -> None:
    # Means 1, .75, 1, .5, 1: mean .85, deviation .2236; .25 is 2.449 below, t with 4 degrees of freedom.
    means = np.array([1, 0.75, 1, 0.5, 1])
    t = (0.25 - means.mean()) / (means.std(ddof=1) * math.sqrt(1 + 1 / 5))
    # The distribution of t with 4 degrees of freedom in closed form.
    root = math.sqrt(4 + t * t)
    expected = 0.5 + t / root * (1 + 2 / root**2) / 2
    assert run_chart_p(table_of([case("a", "1000", *BASELINE)]), PARAMETERS) == pytest.approx(expected)


def test_a_second_run_makes_it_sharper() -> None:
    found = [case("a", "1000", *BASELINE, second="1000")]
    once, twice = run_chart_p(table_of(found), PARAMETERS), run_chart_p(table_of(found, 2), PARAMETERS)
    assert once is not None
    assert twice is not None
    assert twice < once < 0.1


def test_four_baseline_runs_have_no_chart() -> None:
    assert run_chart_p(table_of([case("a", "0", "1", "1", "1", "1")]), PARAMETERS) is None


def test_too_few_cases_in_all_runs() -> None:
    late = [case(f"late {n}", "1", "", "1", "1", "1", "1") for n in range(5)]
    assert run_chart_p(table_of([*late, case("a", "1", *"11111")]), PARAMETERS) is None
    assert run_chart_p(table_of([*late, *copies(5, "1", *"11111")]), PARAMETERS) is not None


@pytest.mark.parametrize(("current", "p"), [("0", 0.0), ("1", 1.0)])
def test_a_baseline_without_spread(current: str, p: float) -> None:
    assert run_chart_p(table_of([case("a", current, *"11111"), case("b", "1", *"11111")]), PARAMETERS) == p


def test_runs_that_wander_excuse_a_drop() -> None:
    wandering = [case(f"case {n}", "0", "1", "0", "1", "1", "0", "1") for n in range(10)]
    steady = [case(f"case {n}", "0", *("01"[(n + r) % 3 > 0] for r in range(6))) for n in range(10)]
    excused, blamed = run_chart_p(table_of(wandering), PARAMETERS), run_chart_p(table_of(steady), PARAMETERS)
    assert excused is not None
    assert blamed is not None
    assert excused > PARAMETERS.alpha_chart > blamed
