"""What the gate can do with a pool, and what would make it find more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.compare.regression.worlds import Arrays, Driver, constant, evidence_of, fixed

from agenteval.compare.regression.capability import power_of
from agenteval.compare.regression.decide import decide
from agenteval.compare.regression.model import Evidence
from agenteval.compare.regression.settings import NAMED_SETTINGS, GateSettings
from agenteval.compare.regression.simulated import nearest

_SETTINGS = GateSettings()


def noisy(runs: int, cases: int = 50, iterations: int = 3, within: float = 0.0) -> list[Arrays]:
    """Runs whose iterations are correlated by ``within``."""
    generator = np.random.default_rng(1)
    made: list[Arrays] = []
    for _ in range(runs):
        rates = np.full((cases, 1), 0.8)
        if within:
            spread = (1 - within) / within
            rates = generator.beta(0.8 * spread, 0.2 * spread, (cases, 1))
        made.append([(generator.random((cases, iterations)) < rates).astype(np.float64)])
    return made


def of_pool(pool: list[Arrays]) -> Evidence:
    """The evidence of a pool without a first run, as before a pull request."""
    return replace(evidence_of(pool[0], pool, [0.5]), first={})


def improved(pool: list[Arrays], what: str) -> tuple[float, float]:
    """The detectable drop now, and with more of something."""
    power = power_of(of_pool(pool), _SETTINGS)
    now = power.detectable["m0"]
    (way,) = [way for way in power.improvements if way.what == what]
    assert now is not None
    return now, way.detectable["m0"]


@pytest.mark.parametrize("what", ["cases", "iterations"])
def test_twice_as_much_is_what_a_twice_as_large_pool_shows(what: str) -> None:
    now, then = improved(noisy(10, cases=400), what)
    doubled = noisy(10, cases=800) if what == "cases" else noisy(10, cases=400, iterations=6)
    measured, _ = improved(doubled, what)
    assert then == pytest.approx(now / np.sqrt(2), rel=0.05)
    assert then == pytest.approx(measured, rel=0.05)


def test_more_iterations_help_less_if_those_of_a_run_resemble_each_other() -> None:
    now, then = improved(noisy(10, cases=400, within=0.6), "iterations")
    measured, _ = improved(noisy(10, cases=400, iterations=6, within=0.6), "iterations")
    assert 0.88 < then / now < 1
    assert then == pytest.approx(measured, rel=0.05)


def test_a_fuller_pool_finds_smaller_drops_until_it_is_full() -> None:
    now, then = improved(noisy(3), "runs")
    assert then == pytest.approx(now * 2.78 / 2.95)
    assert {way.what for way in power_of(of_pool(noisy(10)), _SETTINGS).improvements} == {"iterations", "cases"}


@pytest.mark.parametrize(
    ("pool", "calls"),
    [
        (noisy(10), 12),
        (noisy(3), 12),
        (noisy(10, within=0.6), None),
        (noisy(1), 12),
        ([constant([1.0] * 20)] * 3, 6),
    ],
)
def test_a_broken_case_costs_what_the_gate_asks_for(pool: list[Arrays], calls: int | None) -> None:
    assert power_of(of_pool(pool), _SETTINGS).case_calls == calls
    # Besides one case that never failed, the first run is the newest one, so nothing else is suspicious.
    for run in pool:
        run[0][0] = 1.0
    first = [pool[-1][0].copy()]
    first[0][0] = 0.0
    driver = Driver({"current": fixed(first), "control": fixed(pool[-1])})
    decision = driver.run(decide(evidence_of(first, pool, [0.5]), _SETTINGS))
    assert decision.verdict == ("unchanged" if calls is None else "regressed")
    assert calls is None or decision.cost.calls == calls


def test_a_pool_that_does_not_vary_is_said_to() -> None:
    power = power_of(of_pool([constant([1.0, 0.0, 1.0])] * 2), _SETTINGS)
    assert (power.repeats, power.case_calls, power.detectable, power.improvements) == (True, 6, {"m0": None}, ())
    assert not power_of(of_pool([constant([1.0, 0.0, 1.0])]), _SETTINGS).repeats
    assert not power_of(of_pool(noisy(3)), _SETTINGS).repeats


@pytest.mark.parametrize(
    ("cases", "iterations", "runs", "expected"),
    [(50, 3, 10, (50, 3, 10)), (60, 3, 8, (50, 3, 10)), (1000, 5, 10, (200, 3, 10)), (50, 3, 1, (50, 3, 1))],
)
def test_the_most_similar_suite_is_shown(
    cases: int, iterations: int, runs: int, expected: tuple[int, int, int]
) -> None:
    cell = nearest("default", cases, iterations, runs)
    assert cell is not None
    assert (cell.cases, cell.iterations, cell.runs) == expected


def test_settings_without_an_effect_on_error_rates_have_the_same_figures() -> None:
    evidence = of_pool(noisy(10))
    usual = power_of(evidence, _SETTINGS).simulated
    assert usual is not None
    assert power_of(evidence, GateSettings(tolerance=0.1, min_effect=0.02, window=20)).simulated == usual
    assert power_of(evidence, GateSettings(strict=(0.01,) * 4)).simulated is None
    thrifty = power_of(evidence, NAMED_SETTINGS["thrifty"]).simulated
    assert thrifty is not None
    assert thrifty.extra_runs < usual.extra_runs
