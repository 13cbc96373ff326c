"""What a comparison excludes, what it would find, what it costs, and how fast it is."""

from __future__ import annotations

import resource
import time
from dataclasses import replace

import numpy as np
import pytest
from tests.unit.compare.regression.worlds import Arrays, constant, evidence_of, scores_of

from agenteval.compare.regression.capability import power_of
from agenteval.compare.regression.earlier_runs import run_chart_p
from agenteval.compare.regression.interval import Inversion
from agenteval.compare.regression.mean_proof import screen_means
from agenteval.compare.regression.power import Difference, difference_to_pool
from agenteval.compare.regression.runs import layout_of
from agenteval.compare.regression.settings import NAMED_SETTINGS, GateSettings
from agenteval.compare.regression.trial import start


def bound(cases: int, iterations: int) -> float:
    run = constant([1.0] * cases, iterations)
    layout = layout_of(evidence_of(run, [run], [0.5]), mirrored=False)
    read = layout.read(scores_of(run))
    found = difference_to_pool(read, [read], 0, 1.0, layout.unit_of)
    assert found is not None
    return found.bound


def test_a_suite_that_always_passes_excludes_what_one_iteration_could_hide() -> None:
    # t(.95, 19) · sqrt(2 / 9 · 20 / 19) / 20
    assert bound(20, 3) == pytest.approx(0.0418, abs=1e-4)
    assert bound(20, 5) < bound(20, 3) < bound(10, 3) < bound(2, 3)


def test_more_iterations_would_exclude_what_one_run_does_not() -> None:
    # t(.95, 9) · sqrt(2 / 9 · 10 / 9) / 10 = .0911; with five iterations sqrt(2 / 25 · 10 / 9) instead: .0547.
    always = Difference(mean=0.0, squares=0.0, step=1.0, iterations=3, cases=10, units=10)
    assert always.bound == pytest.approx(0.0911, abs=1e-4)
    assert always.finer(0.10) is None
    finer = always.finer(0.06)
    assert finer is not None
    assert finer.iterations == 5
    assert finer.bound == pytest.approx(0.0547, abs=1e-4)
    # A run with so many iterations excludes what was promised, where iterations are all that varies.
    later = replace(always, squares=0.2)
    promised = later.finer(0.06)
    assert promised is not None
    then = replace(later, squares=0.2 * 3 / promised.iterations, iterations=promised.iterations)
    assert then.bound == pytest.approx(promised.bound)
    assert replace(always, squares=50.0).finer(0.05) is None


def test_no_drop_is_larger_than_the_scale() -> None:
    # One case with one iteration excludes nothing.
    assert bound(1, 1) == 1


def noisy(runs: int, cases: int, metrics: int = 1) -> list[Arrays]:
    generator = np.random.default_rng(1)
    return [[(generator.random((cases, 3)) < 0.85).astype(np.float64) for _ in range(metrics)] for _ in range(runs)]


def test_more_runs_and_more_cases_find_smaller_drops() -> None:
    settings = GateSettings()

    def drop(runs: int, cases: int) -> float:
        made = noisy(runs + 1, cases)
        found = power_of(evidence_of(made[0], made[1:], [0.5]), settings).detectable["m0"]
        assert found is not None
        return found

    assert drop(10, 200) < drop(10, 50) < drop(10, 12)
    # s = sqrt(.85 · .15 / 3 / 50)
    assert drop(10, 50) == pytest.approx(2.78 * np.sqrt(0.85 * 0.15 / 3 / 50), rel=0.15)
    assert 0 < drop(1, 50) < 0.3


def test_what_is_unknown_is_none() -> None:
    same = constant([1.0] * 5)
    assert power_of(evidence_of(same, [same] * 3, [0.5]), GateSettings()).detectable == {"m0": None}
    assert power_of(evidence_of(same, [], [0.5]), GateSettings()).detectable == {"m0": None}
    assert power_of(evidence_of(same, [], [0.5]), replace(GateSettings(), hope=0.2)).simulated is None


@pytest.mark.parametrize("name", NAMED_SETTINGS)
def test_named_settings_were_simulated(name: str) -> None:
    made = noisy(4, 50)
    power = power_of(evidence_of(made[0], made[1:], [0.5]), NAMED_SETTINGS[name])
    assert power.simulated is not None
    assert max(power.simulated.false_alarms) <= 0.025
    assert (power.pool_runs, power.run_calls, power.most_runs, power.most_case_calls) == (3, 150, 8.0, 480)


def test_the_run_chart_compares_with_the_spread_of_the_pool() -> None:
    pool = [np.full(4, value) for value in (0.80, 0.82, 0.78, 0.81, 0.79)]
    low, usual = (run_chart_p([np.full(4, value)] * 2, pool) for value in (0.6, 0.8))
    assert low is not None
    assert usual is not None
    assert low < 0.01
    assert usual > 0.4
    assert run_chart_p([np.full(4, 0.6)], pool[:4]) is None
    assert run_chart_p([np.full(4, 0.6)], [np.ones(4)] * 5) == 0.0
    assert run_chart_p([np.ones(4)], [np.ones(4)] * 5) == 1.0


def test_a_large_screen_needs_little_memory_and_time() -> None:
    made = noisy(11, 1_000, 5)
    trial = start(evidence_of(made[0], made[1:], [0.5] * 5), GateSettings(draws=2_000), mirrored=False)
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    screen_means(trial)
    # About a tenth of the time that would be too much; the limit is for a slow and busy machine.
    assert time.process_time() - began < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_the_time_of_an_interval_hardly_depends_on_the_other_metrics() -> None:
    made = noisy(2, 20, 250)
    trial = start(evidence_of(made[0], made[1:], [0.5] * 250), GateSettings(draws=999), mirrored=False)
    inversion = Inversion([trial.first], trial.pool, trial.unit_of, (1, 10), trial.settings)
    began = time.process_time()
    for metric in range(250):
        inversion.interval(metric, 0.05)
    # About a tenth of the time that would be too much; the limit is for a slow and busy machine.
    assert time.process_time() - began < 8
