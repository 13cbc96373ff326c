"""Attempts of a pull request one after the other, by the arithmetic of the gate and through the results file."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.compare.regression.worlds import Agent, Arrays, Driver, evidence_of

from agenteval.compare.memory import burden_of, next_burden, with_burden
from agenteval.compare.regression.decide import decide
from agenteval.compare.regression.model import Burden, Decision
from agenteval.compare.regression.settings import GateSettings
from agenteval.results.model import Memory
from agenteval.results.verdict import Gate

CASES, ITERATIONS = 40, 3


def agent(rate: float, seed: int, broken: int = 0) -> Agent:
    """Passes each iteration at a rate, but never the first cases."""
    draws = np.random.default_rng(seed)

    def answers(rows: list[int], count: int) -> Arrays:
        scores = (draws.random((len(rows), count)) < rate).astype(np.float64)
        scores[[number for number, row in enumerate(rows) if row < broken]] = 0.0
        return [scores]

    return answers


def whole(of: Agent) -> Arrays:
    return of(list(range(CASES)), ITERATIONS)


def attempt(current: Agent, memory: Memory, seed: int) -> tuple[Decision, Memory, int]:
    """One attempt: the decision, what it leaves for the next one, and the number of requests."""
    pool = [whole(agent(0.9, 100 + number)) for number in range(5)]
    evidence = evidence_of(whole(current), pool, [0.5], seed=seed)
    driver = Driver({"current": current, "control": agent(0.9, 200 + seed)})
    burden = burden_of(memory)
    decision = driver.run(decide(evidence, GateSettings(), burden))
    red = decision.verdict == "regressed"
    gate = Gate(verdict="failed" if red else "passed", exit_status=int(red), headline="decided")
    left = with_burden(memory, next_burden(burden, gate, decision))
    return decision, Memory.model_validate_json(left.model_dump_json()), len(driver.requests)


@pytest.mark.parametrize(("rate", "broken"), [(0.6, 0), (0.9, 1)], ids=["a mean", "a case"])
def test_a_regression_stays_red_until_it_is_mended(rate: float, broken: int) -> None:
    start = Memory(attempt=1, key="0" * 64)
    decision, memory, _ = attempt(agent(rate, 1, broken), start, 1)
    assert decision.verdict == "regressed"
    assert bool(memory.means) or bool(memory.cases)

    # A change that mends nothing.
    decision, memory, _ = attempt(agent(rate, 2, broken), memory, 2)
    assert decision.verdict == "regressed"
    assert bool(memory.means) or bool(memory.cases)

    mended, memory, asked = attempt(agent(0.9, 3), memory, 3)
    assert mended.verdict == "unchanged"
    assert asked > 0
    assert burden_of(memory) == Burden()


def test_what_was_never_proven_is_not_asked_for_again() -> None:
    decision, memory, _ = attempt(agent(0.9, 3), Memory(attempt=1, key="0" * 64), 1)
    assert decision.verdict == "unchanged"
    assert burden_of(memory) == Burden()
