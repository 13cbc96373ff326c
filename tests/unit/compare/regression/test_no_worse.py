"""`require: no-worse-than`: green needs that a drop of more than the tolerance is excluded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.compare.regression.worlds import Agent, Arrays, Driver, constant, evidence_of, fixed

from agenteval.compare.regression.decide import decide
from agenteval.compare.regression.model import Decision, Evidence, Request, Unavailable
from agenteval.compare.regression.settings import GateSettings

REQUIRED = GateSettings(head_to_head_calls=0, draws=499, require="no-worse-than")
NO_CONTROL = Unavailable("control", "its setup fails")


def scores(level: float, spread: float, seed: int) -> Agent:
    generator = np.random.default_rng(seed)
    return lambda rows, count: [generator.normal(level, spread, (len(rows), count)).clip(0, 1)]


def evidence(current: Agent, control: Agent, cases: int) -> Evidence:
    rows = list(range(cases))
    pool: list[Arrays] = [control(rows, 3) for _ in range(5)]
    return evidence_of(current(rows, 3), pool, [None])


def decided(
    current: Agent, control: Agent, cases: int, settings: GateSettings = REQUIRED, refused: Unavailable | None = None
) -> tuple[Decision, list[Request]]:
    driver = Driver(
        {"current": current, "control": control}, lambda request: refused if "control" in request.sides else None
    )
    decision = driver.run(decide(replace(evidence(current, control, cases), repeats=False), settings))
    return decision, driver.requests


def test_a_first_run_that_excludes_the_drop_is_green_without_further_runs() -> None:
    decision, requests = decided(scores(0.8, 0.02, 1), scores(0.8, 0.02, 2), 30)
    assert (decision.verdict, requests) == ("unchanged", [])


def test_runs_side_by_side_exclude_what_the_first_run_does_not() -> None:
    plain, required = (
        decided(scores(0.8, 0.2, 3), scores(0.8, 0.2, 4), 40, settings)[0]
        for settings in (replace(REQUIRED, require=None, tolerance=0.03), replace(REQUIRED, tolerance=0.03))
    )
    assert plain.cost.calls == 0
    assert plain.metrics[0].bound is not None
    assert plain.metrics[0].bound > 0.03
    assert (required.verdict, required.stage) == ("unchanged", "head-to-head")
    assert required.metrics[0].bound is not None
    assert required.metrics[0].bound <= 0.03
    assert 2 <= required.cost.runs <= 8


def test_what_eight_runs_do_not_exclude_is_unproven() -> None:
    decision, _ = decided(scores(0.7, 0.4, 5), scores(0.7, 0.4, 6), 5)
    assert decision.verdict == "unproven"
    assert decision.cost.runs == pytest.approx(8)
    assert decision.missing is not None
    assert "may have fallen by up to" in decision.missing.why
    assert "`require: no-worse-than` allows 5; more iterations or more cases" in decision.missing.why


def test_a_drop_that_the_further_runs_prove_is_red() -> None:
    # The first run of the change is good, and hides its drop from the screen.
    good, bad = scores(0.8, 0.1, 7), scores(0.72, 0.1, 8)
    calls: list[int] = []

    def current(rows: list[int], count: int) -> Arrays:
        calls.append(count)
        return good(rows, count) if len(calls) == 1 else bad(rows, count)

    decision, _ = decided(current, scores(0.8, 0.1, 9), 12, replace(REQUIRED, tolerance=0.01))
    assert decision.verdict == "regressed"


@pytest.mark.parametrize("refused", [NO_CONTROL, Unavailable("limit", "the budget is spent")])
def test_without_the_runs_the_change_is_unproven(refused: Unavailable) -> None:
    decision, _ = decided(scores(0.7, 0.4, 5), scores(0.7, 0.4, 6), 5, refused=refused)
    assert (decision.verdict, decision.missing) == ("unproven", refused)


def test_an_agent_that_never_varies_needs_no_further_runs() -> None:
    same = constant([1.0] * 4)
    driver = Driver({"current": fixed(same), "control": fixed(same)})
    decision = driver.run(decide(evidence_of(same, [same] * 3, [0.5]), REQUIRED))
    assert (decision.verdict, driver.requests) == ("unchanged", [])


@pytest.mark.parametrize(("required", "asks"), [(None, False), ("no-worse-than", True)])
def test_the_runs_are_asked_for_only_if_they_are_required(required: None, asks: bool) -> None:
    found = evidence(scores(0.7, 0.4, 5), scores(0.7, 0.4, 6), 5)
    first = next(decide(found, replace(REQUIRED, require=required)), None)
    assert (first is not None) is asks
