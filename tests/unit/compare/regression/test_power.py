"""What a comparison excludes, what it would find, what it costs, and how fast it is."""

from __future__ import annotations

import resource
import time
from dataclasses import replace

import numpy as np
import pytest
from tests.unit.compare.regression.worlds import Arrays, constant, evidence_of, scores_of

from agenteval.compare.regression.earlier_runs import run_chart_p
from agenteval.compare.regression.mean_proof import screen_means
from agenteval.compare.regression.power import no_worse_than, power_of
from agenteval.compare.regression.runs import layout_of
from agenteval.compare.regression.settings import NAMED_SETTINGS, GateSettings
from agenteval.compare.regression.trial import start


def bound(cases: int, iterations: int) -> float:
    run = constant([1.0] * cases, iterations)
    layout = layout_of(evidence_of(run, [run], [0.5]), mirrored=False)
    read = layout.read(scores_of(run))
    found = no_worse_than(read, [read], 0, 1.0, layout.unit_of)
    assert found is not None
    return found


def test_a_suite_that_always_passes_excludes_what_one_iteration_could_hide() -> None:
    # t(.95, 19) · sqrt(2 / 9 · 20 / 19) / 20
    assert bound(20, 3) == pytest.approx(0.0418, abs=1e-4)
    assert bound(20, 5) < bound(20, 3) < bound(10, 3) < bound(1, 3)


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
