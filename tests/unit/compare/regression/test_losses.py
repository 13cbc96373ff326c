"""Lost iterations may hide failures: they never make a red run green."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.compare.regression.worlds import Agent, Arrays, Driver, evidence_of

from agenteval.compare.regression.decide import decide
from agenteval.compare.regression.model import Decision
from agenteval.compare.regression.settings import GateSettings

SETTINGS = GateSettings(head_to_head_calls=0, draws=999)
CASES = 30


def agent(rate: float, seed: int, *, hides: float = 0.0, loses: float = 0.0) -> Agent:
    """Return an agent that loses a share of its failures, and a share of all iterations."""
    generator = np.random.default_rng(seed)

    def answer(rows: list[int], count: int) -> Arrays:
        run = (generator.random((len(rows), count)) < rate).astype(np.float64)
        chances = generator.random((2, *run.shape))
        return [np.where(((run == 0) & (chances[0] < hides)) | (chances[1] < loses), np.nan, run)]

    return answer


def decided(current: Agent, control: Agent, pool: Agent, runs: int = 5) -> Decision:
    rows = list(range(CASES))
    evidence = evidence_of(current(rows, 3), [pool(rows, 3) for _ in range(runs)], [0.5])
    return Driver({"current": current, "control": control}).run(decide(evidence, SETTINGS))


@pytest.mark.parametrize("hides", [0.0, 0.5, 1.0])
def test_hidden_failures_are_not_green(hides: float) -> None:
    decision = decided(agent(0.4, 1, hides=hides), agent(0.95, 2), agent(0.95, 3))
    assert decision.verdict == {0.0: "regressed", 0.5: "regressed", 1.0: "unproven"}[hides]
    assert decision.losses == (hides > 0)
    if hides == 1.0:
        assert decision.lost[0] > 0.4
        assert decision.lost[1] == 0


def test_failures_hidden_only_in_the_confirming_runs_are_not_green() -> None:
    first, later = agent(0.4, 1), agent(0.4, 4, hides=1.0)
    calls: list[int] = []

    def current(rows: list[int], count: int) -> Arrays:
        calls.append(count)
        return first(rows, count) if len(calls) == 1 else later(rows, count)

    assert decided(current, agent(0.95, 2), agent(0.95, 3)).verdict == "unproven"


def test_losses_that_both_sides_share_are_green() -> None:
    current, control = agent(0.95, 5, loses=0.08), agent(0.95, 6, loses=0.08)
    assert decided(current, control, agent(0.95, 7, loses=0.08)).verdict == "unchanged"


def test_losses_that_raise_no_suspicion_stay_missing() -> None:
    current = agent(1.0, 1)

    def losing(rows: list[int], count: int) -> Arrays:
        run = current(rows, count)
        run[0][0, 0] = np.nan
        return run

    decision = decided(losing, agent(0.5, 2), agent(0.5, 3))
    assert (decision.verdict, decision.losses) == ("unchanged", False)
    assert decision.lost[0] == pytest.approx(1 / 90)


def test_a_control_that_loses_too_much_proves_nothing() -> None:
    decision = decided(agent(0.3, 1), agent(0.95, 2, loses=0.3), agent(0.95, 3))
    assert decision.verdict == "unproven"
    assert decision.missing is not None
    assert decision.missing.what == "runs"
    assert "the control lost" in decision.missing.why
