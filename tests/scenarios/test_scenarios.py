"""Plays all scenarios; ``-k holodeck`` plays some."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.scenarios.scenario import Scenario, check, load_scenarios
from tests.scenarios.stage import Stage, opened_stage, play


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with opened_stage() as found:
        yield found


def _parameter(scenario: Scenario) -> Any:
    fails = pytest.mark.xfail(reason=scenario.fails_because, strict=True, raises=AssertionError)
    return pytest.param(scenario, id=scenario.id, marks=[fails] if scenario.fails_because else [])


@pytest.mark.parametrize("scenario", [_parameter(scenario) for scenario in load_scenarios()])
def test_scenario(scenario: Scenario, stage: Stage) -> None:
    for number, (step, seen) in enumerate(play(scenario, stage), 1):
        try:
            check(step.get("expect", {}), seen)
        except AssertionError as error:
            error.add_note(f"step {number} of {len(scenario.steps)}: agenteval {step.get('run', 'run')}")
            raise
