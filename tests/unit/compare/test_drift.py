"""Notes about drift: between the runs of the pool, and of the control."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.compare.regression.worlds import Arrays, constant, evidence_of

from agenteval.compare.drift import drift_notes
from agenteval.compare.regression.model import Decision, Evidence
from agenteval.compare.regression.pool_drift import pool_drift_p
from agenteval.compare.regression.settings import GateSettings

SETTINGS = GateSettings()
UNCHANGED = Decision(verdict="unchanged", stage="screen", metrics=())


def evidence(seed: int, shift: float, *, runs: int = 10, cases: int = 50, units: list[int] | None = None) -> Evidence:
    """A pool whose days shift all pass rates by up to so many points, up and down in turn."""
    generator = np.random.default_rng(seed)
    rates = generator.beta(5, 1, cases)
    if units is not None:
        rates = rates[units]
    shown: list[Arrays] = []
    for run in range(runs + 1):
        rate = np.clip(rates + (shift if run % 2 else -shift), 0, 1)
        drawn = generator.random((cases, 3)) if units is None else generator.random((cases, 3))[units]
        shown.append([(drawn < rate[:, None]).astype(np.float64)])
    return evidence_of(shown[0], shown[1:], [0.5], units=units)


def test_chance_is_no_drift() -> None:
    p_values = [pool_drift_p(evidence(seed, 0.0), SETTINGS)["m0"] for seed in range(300)]
    for alpha in (0.01, 0.05, 0.2):
        assert np.mean(np.array(p_values) <= alpha) <= alpha + 3 * (alpha * (1 - alpha) / 300) ** 0.5


def test_drift_is_found() -> None:
    assert all(pool_drift_p(evidence(seed, 0.15), SETTINGS)["m0"] < 0.01 for seed in range(20))


def test_cases_of_a_cluster_count_once() -> None:
    # Ten times the same five cases are five, and say nothing.
    units = [number % 5 for number in range(50)]
    p_values = [pool_drift_p(evidence(seed, 0.0, units=units), SETTINGS)["m0"] for seed in range(100)]
    assert np.mean(np.array(p_values) <= 0.01) <= 0.05


@pytest.mark.parametrize(
    "found",
    [
        evidence(1, 0.3, runs=2),
        evidence(1, 0.3, cases=4),
        evidence_of(constant([1.0] * 9), [constant([1.0] * 9)] * 5, [0.5]),
    ],
    ids=["two runs", "four cases", "no variation"],
)
def test_what_cannot_be_tested_has_no_note(found: Evidence) -> None:
    assert pool_drift_p(found, SETTINGS) == {}
    assert list(drift_notes(found, UNCHANGED, SETTINGS)) == []


def test_the_note_says_what_drift_costs() -> None:
    (note,) = drift_notes(evidence(1, 0.3), UNCHANGED, SETTINGS)
    assert "differ significantly in 'm0': expect further runs in about 1 of 3 pull requests" in note


@pytest.mark.parametrize(("p", "notes"), [(None, 0), (0.2, 0), (0.05, 1), (0.0, 1)])
def test_a_control_that_is_lower_than_the_pool_asks_for_a_run_of_the_base_branch(p: float | None, notes: int) -> None:
    found = list(drift_notes(evidence(2, 0.0), replace(UNCHANGED, control_p=p), SETTINGS))
    assert len(found) == notes
    assert all("evaluate the base branch again" in note for note in found)
