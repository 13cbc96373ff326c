"""What halves the detectable drop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.compare.statistics.designs import copies, metric

from agenteval.compare.statistics.means import detectable
from agenteval.compare.statistics.model import CaseRuns, MetricRuns
from agenteval.compare.statistics.parameters import GateParameters
from agenteval.compare.statistics.power import ways_to_halve

PARAMETERS = GateParameters()


def noisy(cases: int, iterations: int, runs: int, spread: float = 0.0) -> MetricRuns:
    """Cases that pass half the time; ``spread`` moves each case's own rate in the pull request."""
    generator = np.random.default_rng([cases, iterations, runs])
    rates = np.clip(0.5 + generator.normal(0, spread, cases), 0, 1) if spread else np.full(cases, 0.5)

    def run(n: int, rate: float) -> tuple[float, ...]:
        return tuple((generator.random(iterations) < rate).astype(float).tolist())

    return metric(
        *(
            CaseRuns(case_id=f"{n:04d}", current=run(n, rates[n]), baseline=tuple(run(n, 0.5) for _ in range(runs)))
            for n in range(cases)
        )
    )


@pytest.mark.parametrize(("iterations", "runs"), [(1, 1), (1, 5), (3, 1), (3, 5)])
def test_its_advice_about_halves_the_drop(iterations: int, runs: int) -> None:
    before = detectable(noisy(100, iterations, runs), "rerun", PARAMETERS)
    assert before is not None
    sizes = {"cases": 100, "iterations": iterations, "baseline runs": runs}
    found = ways_to_halve(noisy(100, iterations, runs), PARAMETERS)
    assert "cases" in {way.means for way in found}
    for way in found:
        assert way.now == sizes[way.means] < way.wanted
        grown = {**sizes, way.means: way.wanted}
        after = detectable(noisy(grown["cases"], grown["iterations"], grown["baseline runs"]), "rerun", PARAMETERS)
        assert after == pytest.approx(before / 2, rel=0.25)
        assert way.detectable_drop <= before / 2


def test_the_cheapest_comes_first() -> None:
    costs = [way.extra_iterations for way in ways_to_halve(noisy(100, 3, 2), PARAMETERS)]
    assert len(costs) > 1
    assert costs == sorted(costs)


def test_costs_are_iterations_of_a_run() -> None:
    for way in ways_to_halve(noisy(100, 3, 2), PARAMETERS):
        per_unit = {"cases": 3, "iterations": 100, "baseline runs": 0}[way.means]
        assert way.extra_iterations == per_unit * (way.wanted - way.now)


def test_iterations_do_not_help_where_cases_differ() -> None:
    means = {way.means for way in ways_to_halve(noisy(60, 20, 5, spread=0.4), PARAMETERS)}
    assert means == {"cases"}


def test_near_the_smallest_effect_no_advice_exists() -> None:
    assert ways_to_halve(replace(noisy(100, 3, 5), step=0.1), replace(PARAMETERS, min_effect=0.2)) == ()


def test_more_runs_than_the_window_are_not_proposed() -> None:
    found = ways_to_halve(noisy(100, 3, 1), replace(PARAMETERS, window=1))
    assert "baseline runs" not in {way.means for way in found}


def test_a_suite_that_always_passes_needs_more_cases_or_iterations() -> None:
    found = ways_to_halve(metric(*copies(20, "111", "111", "111")), PARAMETERS)
    assert {way.means for way in found} >= {"cases", "iterations"}


def test_nothing_to_compare() -> None:
    assert ways_to_halve(metric(), PARAMETERS) == ()
