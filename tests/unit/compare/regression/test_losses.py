"""Lost iterations may hide failures: they never make a red run green."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.compare.regression.worlds import Agent, Arrays, Driver, evidence_of, fixed

from agenteval.compare.regression.decide import decide
from agenteval.compare.regression.model import Burden, Decision
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


@pytest.mark.parametrize("rate", [0.2, 0.3])
def test_a_control_that_loses_as_much_as_the_change_is_no_failing_infrastructure(rate: float) -> None:
    verdicts = [
        decided(
            agent(0.95, 10 * seed, loses=rate),
            agent(0.95, 10 * seed + 1, loses=rate),
            agent(0.95, 10 * seed + 2, loses=0.02),
        )
        for seed in range(12)
    ]
    assert all(decision.losses for decision in verdicts)
    assert sum(decision.verdict == "unchanged" for decision in verdicts) >= 11


def test_losses_of_the_control_hide_no_drop() -> None:
    # With its lost iterations as failures, the control is as bad as the change.
    decision = decided(agent(0.6, 1), agent(0.95, 2, loses=0.4), agent(0.95, 3))
    assert decision.verdict == "unproven"
    assert decision.missing is not None
    assert "the control lost" in decision.missing.why


def test_losses_of_the_control_hide_no_drop_of_a_change_that_loses_too() -> None:
    decision = decided(agent(0.6, 1, loses=0.1), agent(0.95, 2, loses=0.4), agent(0.95, 3))
    assert decision.verdict == "unproven"


def test_a_suspect_that_is_lost_in_every_rerun_is_not_green() -> None:
    good = agent(1.0, 2, loses=0.25)
    current = losing_cases(agent(1.0, 1, loses=0.25), ONE_CASE)
    decision = decided(current, good, agent(1.0, 3, loses=0.02))
    assert decision.verdict == "unproven"


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


def broken_case(agent: Agent, passes: float) -> Agent:
    """Return the agent with a case that always has the same score."""

    def answer(rows: list[int], count: int) -> Arrays:
        run = agent(rows, count)
        run[0][[row == 0 for row in rows]] = passes
        return run

    return answer


ALL, ONE_CASE = range(CASES), range(1)


def losing_cases(agent: Agent, lost: range, *, kept: int = 0) -> Agent:
    """Return the agent with all but the first iterations of some cases lost."""

    def answer(rows: list[int], count: int) -> Arrays:
        run = agent(rows, count)
        run[0][[row in lost for row in rows], kept:] = np.nan
        return run

    return answer


@pytest.mark.parametrize("lost", [ALL, ONE_CASE])
@pytest.mark.parametrize("pool", [0, 1, 5])
def test_a_control_without_scores_clears_nothing(lost: range, pool: int) -> None:
    rate, good = (0.4, agent(0.95, 2)) if lost is ALL else (0.95, broken_case(agent(0.95, 2), 1.0))
    current = agent(rate, 1) if lost is ALL else broken_case(agent(rate, 1), 0.0)
    rows = list(range(CASES))
    evidence = evidence_of(current(rows, 3), [good(rows, 3) for _ in range(max(pool, lost is ONE_CASE))], [0.5])
    driver = Driver({"current": current, "control": losing_cases(good, lost)})
    decision = driver.run(decide(evidence, SETTINGS))
    assert decision.verdict == "unproven"
    assert decision.missing is not None
    assert "the control lost 100%" in decision.missing.why


@pytest.mark.parametrize("burden", [Burden(means={"m0": 0.3}), Burden(cases={("m0", "case-0000"): 1.0})])
def test_a_control_without_scores_refutes_nothing(burden: Burden) -> None:
    good, rows = agent(0.95, 2), list(range(CASES))
    evidence = evidence_of(good(rows, 3), [good(rows, 3) for _ in range(5)], [0.5])
    driver = Driver({"current": good, "control": losing_cases(good, ALL)})
    assert driver.run(decide(evidence, SETTINGS, burden)).verdict == "unproven"


def test_one_lost_rerun_of_the_control_is_no_failing_infrastructure() -> None:
    good, rows = fixed([np.ones((CASES, 1))]), list(range(CASES))
    flaky, noise = good(rows, 3), agent(0.95, 3)
    flaky[0][0] = 0.0
    evidence = evidence_of(flaky, [good(rows, 3), *(broken_case(noise, 1.0)(rows, 3) for _ in range(4))], [0.5])
    one_of_three = iter([[1.0, 0.0, 1.0]])

    def current(rows: list[int], count: int) -> Arrays:
        run = good(rows, count)
        if rows == [0]:
            run[0][0] = next(one_of_three)
        return run

    def control(rows: list[int], count: int) -> Arrays:
        return [np.array([[0.0, np.nan, 1.0]])] if rows == [0] else good(rows, count)

    decision = Driver({"current": current, "control": control}).run(decide(evidence, SETTINGS))
    assert decision.verdict == "unchanged"
    assert decision.lost[1] == pytest.approx(1 / 3)


def test_a_run_that_lost_everything_is_no_pool() -> None:
    rows, lost = list(range(CASES)), [np.full((CASES, 3), np.nan)]
    evidence = evidence_of(agent(0.4, 1)(rows, 3), [lost], [0.5])
    driver = Driver({"current": agent(0.4, 2), "control": agent(0.95, 3)})
    assert driver.run(decide(evidence, SETTINGS)).verdict == "regressed"
    assert (driver.requests[0].stage, driver.requests[0].sides) == ("screen", ("control",))
