"""Decisions on runs from files, where nothing can be run again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.compare.regression.worlds import Arrays, constant, evidence_of, scores_of

from agenteval.compare.regression.model import Decision
from agenteval.compare.regression.on_files import decide_on_files
from agenteval.compare.regression.settings import GateSettings

SETTINGS = GateSettings(draws=999)


def decided(current: list[Arrays], base: list[Arrays], *, repeats: bool = False) -> Decision:
    evidence = evidence_of(current[0], base, [0.5], repeats=repeats)
    return decide_on_files(evidence, tuple(scores_of(run) for run in current[1:]), SETTINGS)


def passing(passed: int, cases: int, iterations: int = 1) -> Arrays:
    return constant([1.0] * passed + [0.0] * (cases - passed), iterations)


def noisy(rate: float, seed: int, runs: int, cases: int = 30) -> list[Arrays]:
    generator = np.random.default_rng(seed)
    return [[(generator.random((cases, 3)) < rate).astype(np.float64)] for _ in range(runs)]


@pytest.mark.parametrize("iterations", [1, 3])
@pytest.mark.parametrize(("ours", "theirs"), [(1, 1), (1, 4), (2, 1), (2, 2), (4, 9)])
def test_half_of_twenty_cases_lost_is_red(iterations: int, ours: int, theirs: int) -> None:
    decision = decided([passing(10, 20, iterations)] * ours, [passing(20, 20, iterations)] * theirs)
    assert decision.verdict == "regressed"
    assert decision.metrics[0].proven


@pytest.mark.parametrize(("ours", "theirs"), [(1, 1), (2, 2), (4, 9)])
@pytest.mark.parametrize(("passed", "verdict"), [(20, "unchanged"), (19, "unproven"), (0, "unproven")])
@pytest.mark.parametrize("repeats", [False, True])
def test_runs_of_unknown_rules_only_raise_suspicions(
    ours: int, theirs: int, passed: int, verdict: str, repeats: bool
) -> None:
    base, (first, *further) = [passing(20, 20, 3)] * theirs, [passing(passed, 20, 3)] * ours
    evidence = replace(evidence_of(first, base, [0.5], repeats=repeats), proves_nothing=True)
    decision = decide_on_files(evidence, tuple(scores_of(run) for run in further), SETTINGS)
    assert decision.verdict == verdict
    assert not any(finding.proven for finding in decision.metrics)
    assert not any(case.proven for case in decision.cases)
    if verdict == "unproven":
        assert decision.missing is not None
        assert "earlier version of agenteval" in decision.missing.why


def test_the_same_is_unchanged() -> None:
    for ours, theirs in ((1, 1), (3, 3)):
        assert decided([passing(20, 20)] * ours, [passing(20, 20)] * theirs).verdict == "unchanged"


def test_half_of_the_iterations_of_one_case_lost_is_not_green() -> None:
    half: Arrays = [np.array([[1.0] * 10 + [0.0] * 10])]
    decision = decided([half], [[np.ones((1, 20))]])
    assert decision.verdict == "unproven"
    assert decision.missing is not None


def test_a_broken_case_in_one_run_is_unproven_and_in_several_is_red() -> None:
    base, broken = noisy(0.9, 1, 4), noisy(0.9, 2, 4)
    for run in base:
        run[0][0] = 1.0
    for run in broken:
        run[0][0] = 0.0
    single, several = decided(broken[:1], base), decided(broken, base)
    assert single.verdict == "unproven"
    assert several.verdict == "regressed"
    assert [case.case_id for case in several.cases if case.proven] == ["case-0000"]
    assert several.cases[0].q is not None
    assert several.cases[0].limit is not None
    assert several.cases[0].q <= several.cases[0].limit


def test_several_runs_on_both_sides_are_compared_side_by_side() -> None:
    decision = decided(noisy(0.6, 1, 6), noisy(0.9, 2, 5))
    assert (decision.verdict, decision.stage) == ("regressed", "head-to-head")
    finding = decision.metrics[0]
    assert 1 <= finding.runs <= 4
    assert finding.interval is not None
    assert finding.interval[1] < 0
    assert decided(noisy(0.9, 3, 4), noisy(0.9, 4, 4)).verdict == "unchanged"


def test_an_agent_declared_to_repeat_needs_no_statistics() -> None:
    decision = decided([passing(19, 20)], [passing(20, 20)], repeats=True)
    assert (decision.verdict, decision.stage) == ("regressed", "repeats")


def test_without_a_base_nothing_is_proven() -> None:
    decision = decided([passing(20, 20)], [])
    assert decision.verdict == "unproven"
    assert decision.missing is not None


def test_losses_count_as_failures_and_are_named() -> None:
    lost: Arrays = [np.where(np.arange(20)[:, None] < 10, 1.0, np.full((20, 1), np.nan))]
    decision = decided([lost], [passing(20, 20)] * 4)
    assert (decision.verdict, decision.losses) == ("unproven", True)
    assert decision.lost == (0.5, 0.0)


@pytest.mark.parametrize("place", [0, 1])
def test_the_order_of_the_runs_hides_no_broken_case(place: int) -> None:
    base, change = noisy(1.0, 1, 10), noisy(1.0, 2, 2)
    base[0][0][1] = [1.0, 1.0, 0.0]
    change[place][0][0] = 0.0
    decision = decided(change, base)
    assert decision.verdict == "unproven"
    assert (decision.cases[0].current.failed, decision.cases[0].current.of) == (3, 6)


def test_one_failure_of_one_case_is_green() -> None:
    base, change = noisy(1.0, 1, 10), noisy(1.0, 2, 1)
    base[0][0][1] = [1.0, 1.0, 0.0]
    change[0][0][0] = [1.0, 1.0, 0.0]
    decision = decided(change, base)
    assert decision.verdict == "unchanged"
    assert [case.case_id for case in decision.cases] == ["case-0000"]


@pytest.mark.parametrize("iterations", [40, 400, 1200])
def test_many_iterations_hide_no_fall(iterations: int) -> None:
    half: Arrays = [np.tile([[0.0, 1.0]], (2, iterations // 2))]
    half[0][1] = 1.0
    assert decided([half], [[np.ones((2, iterations))]]).verdict in {"unproven", "regressed"}
