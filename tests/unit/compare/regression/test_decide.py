"""What the gate asks for, when it stops, and what it decides when a request is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.unit.compare.regression.worlds import Agent, Arrays, Driver, constant, evidence_of, fixed

from agenteval.compare.regression.decide import decide, decide_rise
from agenteval.compare.regression.model import Burden, Decision, Evidence, Request, Unavailable
from agenteval.compare.regression.settings import GateSettings

SETTINGS = GateSettings(head_to_head_calls=0, draws=999)
GOOD, BAD = constant([1.0] * 19), constant([1.0] * 8 + [0.0] * 11)
NO_CONTROL = Unavailable("control", "its setup fails")
NO_RUNS = Unavailable("runs", "the agent is gone")
LIMIT = Unavailable("limit", "the budget is spent")


def noisy(rate: float, seed: int) -> Agent:
    generator = np.random.default_rng(seed)
    return lambda rows, count: [(generator.random((len(rows), count)) < rate).astype(np.float64)]


def runs_of(agent: Agent, number: int, cases: int = 30) -> list[Arrays]:
    return [agent(list(range(cases)), 3) for _ in range(number)]


def drive(
    evidence: Evidence,
    current: Agent,
    control: Agent,
    refused: Callable[[Request], Unavailable | None] = lambda request: None,
    *,
    settings: GateSettings = SETTINGS,
    burden: Burden | None = None,
) -> tuple[Decision, list[Request]]:
    driver = Driver({"current": current, "control": control}, refused)
    return driver.run(decide(evidence, settings, burden)), driver.requests


def refusing(answer: Unavailable, *, only_control: bool = False) -> Callable[[Request], Unavailable | None]:
    return lambda request: answer if "control" in request.sides or not only_control else None


@pytest.mark.parametrize("new", [1, 2])
@pytest.mark.parametrize("old", [1, 3, 10])
def test_an_undone_improvement_is_red_whatever_the_pool_remembers(old: int, new: int) -> None:
    evidence = evidence_of(BAD, ([BAD] * old + [GOOD] * new)[-10:], [0.5])
    decision, _ = drive(evidence, fixed(BAD), fixed(GOOD))
    assert decision.verdict == "regressed"
    assert decision.cost.runs == pytest.approx(2.0)
    (finding,) = decision.metrics
    assert finding.proven
    assert finding.interval is not None
    assert finding.interval[1] < 0
    assert not any(case.proven for case in decision.cases)


@pytest.mark.parametrize("pool", [1, 2, 10])
@pytest.mark.parametrize("cases", [5, 20])
@pytest.mark.parametrize(
    ("change", "is_red"),
    [("none", False), ("one fails", True), ("three fail", True), ("all lower", True), ("one lower", None)],
)
def test_agents_that_never_vary(cases: int, pool: int, change: str, is_red: bool | None) -> None:
    generator = np.random.default_rng((cases, pool))
    passed = np.ones(cases)
    passed[3:] = generator.random(cases - 3) < 0.8
    before = [passed, *np.round(generator.uniform(0.6, 1.0, (4, cases)), 2)]
    after = [values.copy() for values in before]
    if change.endswith(("fails", "fail")):
        after[0][: 1 if change == "one fails" else 3] = 0
    if change == "all lower":
        after[1] = np.clip(after[1] - 0.34, 0, 1)
    if change == "one lower":
        after[1][0] -= 0.3
    base, tip = ([constant(values.tolist())[0] for values in run] for run in (before, after))
    decision, requests = drive(
        evidence_of(tip, [base] * pool, [0.5, None, None, None, None]), fixed(tip), fixed(base)
    )
    # A mean that falls by .3 / N counts from one point on, but only where the pool shows that nothing varies.
    expected = pool > 1 if is_red is None else is_red
    assert decision.verdict == ("regressed" if expected else "unchanged")
    assert decision.repeats == (pool > 1)
    assert bool(requests) == (change != "none" and not (change == "one lower" and pool == 1))
    if pool > 1 and change != "none":
        assert {request.stage for request in requests} == {"repeats"}
        assert decision.cost.calls == 6 * len(decision.changed)


def test_a_declared_agent_repeats_from_one_run_on() -> None:
    one = constant([0.0] + [1.0] * 18)
    evidence = evidence_of(one, [BAD, GOOD], [0.5], repeats=True)
    decision, requests = drive(evidence, fixed(one), fixed(GOOD))
    assert (decision.verdict, decision.stage, decision.repeats) == ("regressed", "repeats", True)
    assert [request.iterations for request in requests] == [{"case-0000": 3}]
    assert decision.cases[0].proven
    assert decision.cases[0].q is None


def test_one_deviating_repeat_leaves_the_decision_to_the_statistics() -> None:
    one = constant([0.0] + [1.0] * 18)
    decision, requests = drive(evidence_of(one, [GOOD] * 3, [0.5]), noisy(0.5, 3), fixed(GOOD))
    assert not decision.repeats
    assert requests[0].stage == "repeats"
    assert {request.stage for request in requests[1:]} == {"cases"}


def test_without_a_pool_a_control_run_is_the_pool() -> None:
    decision, requests = drive(evidence_of(GOOD, [], [0.5]), fixed(GOOD), fixed(GOOD))
    assert [(request.stage, request.sides, request.is_whole) for request in requests] == [
        ("screen", ("control",), True)
    ]
    assert (decision.verdict, decision.cost.runs, decision.cost.calls) == ("unchanged", 1.0, 57)


def test_a_large_drop_is_proven_side_by_side() -> None:
    decision, requests = drive(
        evidence_of(runs_of(noisy(0.4, 1), 1)[0], runs_of(noisy(0.9, 2), 5), [0.5]), noisy(0.4, 3), noisy(0.9, 4)
    )
    assert (decision.verdict, decision.stage) == ("regressed", "head-to-head")
    assert [request.stage for request in requests[:3]] == ["second"] * 3
    assert requests[3].sides == ("control",)
    (finding,) = decision.metrics
    assert finding.p is not None
    assert finding.limit is not None
    assert finding.interval is not None
    assert finding.p <= finding.limit
    assert finding.interval[1] < 0


def test_short_suites_run_longer_side_by_side() -> None:
    few = runs_of(noisy(0.2, 1), 1, 10)[0]
    evidence = evidence_of(few, runs_of(noisy(0.95, 2), 5, 10), [0.5])
    decision, requests = drive(evidence, noisy(0.2, 3), noisy(0.95, 4), settings=GateSettings(draws=999))
    assert decision.verdict == "regressed"
    together = [request for request in requests if request.stage == "head-to-head"]
    assert set(together[0].iterations.values()) == {9}
    assert together[0].sides == ("current",)
    assert set(together[1].iterations.values()) == {12}


def test_a_suspicion_ends_at_the_first_good_pass() -> None:
    evidence = evidence_of(runs_of(noisy(0.5, 1), 1)[0], runs_of(noisy(0.9, 2), 5), [None])
    decision, requests = drive(evidence, fixed(constant([1.0] * 30)), noisy(0.9, 4))
    assert (decision.verdict, decision.stage, len(requests)) == ("unchanged", "second", 1)
    assert decision.metrics[0].suspicious
    assert decision.metrics[0].p is None


@pytest.mark.parametrize("answer", [NO_RUNS, LIMIT])
@pytest.mark.parametrize("place", [0, 1, 3, 4])
def test_a_suspicion_that_cannot_be_confirmed_is_unproven(answer: Unavailable, place: int) -> None:
    seen: list[Request] = []

    def refused(request: Request) -> Unavailable | None:
        seen.append(request)
        return answer if len(seen) > place else None

    evidence = evidence_of(runs_of(noisy(0.55, 1), 1)[0], runs_of(noisy(0.75, 2), 5), [None])
    decision, requests = drive(evidence, noisy(0.55, 3), noisy(0.75, 4), refused)
    assert len(requests) == place + 1
    assert (decision.verdict, decision.missing, decision.stage) == ("unproven", answer, requests[-1].stage)
    assert not any(finding.proven for finding in decision.metrics)


def test_repeats_that_cannot_be_made_are_unproven_only_if_they_could_be_red() -> None:
    for first, verdict in ((BAD, "unproven"), (constant([0.9] + [1.0] * 149), "unchanged")):
        base = constant([1.0] * len(first[0]))
        decision, _ = drive(evidence_of(first, [base] * 3, [0.5]), fixed(first), fixed(base), refusing(NO_RUNS))
        assert decision.verdict == verdict
        assert not any(case.proven for case in decision.cases)
        assert not any(finding.proven for finding in decision.metrics)


@pytest.mark.parametrize(
    ("rate", "pool", "verdict"), [(0.3, 6, "regressed"), (0.9, 6, "unchanged"), (0.3, 2, "unproven")]
)
def test_without_a_control_earlier_runs_decide(rate: float, pool: int, verdict: str) -> None:
    evidence = evidence_of(runs_of(noisy(min(rate, 0.75), 1), 1)[0], runs_of(noisy(0.9, 2), pool), [None])
    decision, _ = drive(evidence, noisy(rate, 3), noisy(0.9, 4), refusing(NO_CONTROL, only_control=True))
    assert decision.verdict == verdict
    if verdict == "regressed":
        assert (decision.stage, decision.missing) == ("earlier-runs", NO_CONTROL)
        assert decision.metrics[0].limit == 0.01
    if verdict == "unproven":
        assert decision.missing == NO_CONTROL


def test_without_a_control_a_broken_case_is_proven_by_its_reruns() -> None:
    first = runs_of(noisy(0.9, 1), 1)[0]
    pool = runs_of(noisy(0.9, 2), 10)
    for run in (*pool, first):
        run[0][0] = 1.0
    first[0][0] = 0.0

    def current(rows: list[int], count: int) -> Arrays:
        return [np.where(np.array(rows)[:, None] == 0, 0.0, np.ones((len(rows), count)))]

    evidence = evidence_of(first, pool, [0.5])
    decision, _ = drive(evidence, current, noisy(0.9, 4), refusing(NO_CONTROL, only_control=True))
    assert (decision.verdict, decision.stage, decision.missing) == ("regressed", "earlier-runs", NO_CONTROL)
    (proven,) = [case for case in decision.cases if case.proven]
    assert proven.case_id == "case-0000"
    assert proven.control.of == 0
    assert proven.q is not None
    assert proven.limit is not None
    assert proven.q <= proven.limit


@pytest.mark.parametrize(("declared", "pool"), [(True, 1), (False, 2)])
def test_an_agent_that_repeats_needs_no_control(declared: bool, pool: int) -> None:
    evidence = evidence_of(BAD, [GOOD] * pool, [0.5], repeats=declared)
    decision, requests = drive(evidence, fixed(BAD), fixed(GOOD), refusing(NO_CONTROL, only_control=True))
    assert (decision.verdict, decision.stage, decision.missing) == ("regressed", "earlier-runs", NO_CONTROL)
    assert [request.sides for request in requests] == [("current", "control"), ("current",)]


@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize(("refused", "verdict"), [(NO_CONTROL, "unproven"), (None, "regressed")])
def test_runs_of_unknown_rules_only_raise_suspicions(
    repeats: bool, refused: Unavailable | None, verdict: str
) -> None:
    agents = (fixed(BAD), fixed(GOOD)) if repeats else (noisy(0.3, 3), noisy(0.9, 4))
    first, pool = agents[0](list(range(19)), 3), runs_of(agents[1], 6, 19)
    evidence = replace(evidence_of(first, pool, [0.5]), proves_nothing=True)
    refusing_all = refusing(refused, only_control=True) if refused else lambda _: None
    decision, _ = drive(evidence, *agents, refusing_all)
    assert (decision.verdict, decision.missing) == (verdict, refused)
    assert any(finding.proven for finding in decision.metrics) == (refused is None)


@pytest.mark.parametrize(("is_fixed", "verdict"), [(True, "unchanged"), (False, "regressed")])
@pytest.mark.parametrize(
    "burden", [Burden(means={"m0": 0.3}), Burden(cases={("m0", "case-0000"): 1.0}), Burden(means={"gone": 0.3})]
)
def test_a_burden_must_be_refuted(burden: Burden, is_fixed: bool, verdict: str) -> None:
    good, bad = noisy(0.9, 5), noisy(0.1, 6)
    first = runs_of(good, 1)[0]
    evidence = evidence_of(first, runs_of(noisy(0.9, 2), 5), [0.5])
    decision, requests = drive(evidence, good if is_fixed else bad, noisy(0.9, 4), burden=burden)
    if burden.means == {"gone": 0.3}:
        assert not any(request.stage == "memory" for request in requests)
        return
    assert decision.verdict == verdict
    assert requests[0].stage == "memory"
    if is_fixed and burden.means:
        assert [look.runs for look in decision.looks[:4]] == [1, 2, 3, 4]


@pytest.mark.parametrize("declared", [True, False])
def test_a_first_run_without_variation_does_not_refute_a_burden(declared: bool) -> None:
    good = constant([1.0] * 19)

    def flaky(rows: list[int], count: int) -> Arrays:
        run = fixed(good)(rows, count)
        run[0][[row == 0 for row in rows], ::2] = 0.0
        return run

    evidence = evidence_of(good, [good] * 3, [0.5], repeats=declared)
    decision, requests = drive(evidence, flaky, fixed(good), burden=Burden(cases={("m0", "case-0000"): 0.6}))
    assert decision.verdict == ("unchanged" if declared else "regressed")
    assert [request.stage for request in requests] == ([] if declared else ["memory"])
    assert decision.repeats == declared


def test_a_burden_that_cannot_be_refuted_is_unproven() -> None:
    evidence = evidence_of(GOOD, runs_of(noisy(0.9, 2), 5, 19), [0.5])
    decision, _ = drive(evidence, fixed(GOOD), fixed(GOOD), refusing(NO_CONTROL), burden=Burden(means={"m0": 0.3}))
    assert (decision.verdict, decision.missing) == ("unproven", NO_CONTROL)


def test_a_rise_is_proven_in_values_as_they_are() -> None:
    first = runs_of(noisy(0.95, 1), 1)[0]
    evidence = evidence_of(first, runs_of(noisy(0.4, 2), 5), [0.5])
    driver = Driver({"current": noisy(0.95, 3), "control": noisy(0.4, 4)})
    decision = driver.run(decide_rise(evidence, SETTINGS))
    (finding,) = decision.metrics
    assert (decision.verdict, finding.proven) == ("improved", True)
    assert finding.interval is not None
    assert 0 < finding.interval[0] <= finding.current - finding.control <= finding.interval[1]
    assert finding.first == pytest.approx(first[0].mean())
    assert decision.looks[-1].difference == pytest.approx(finding.current - finding.control)


def test_earlier_runs_never_prove_a_rise() -> None:
    evidence = evidence_of(runs_of(noisy(0.95, 1), 1)[0], runs_of(noisy(0.4, 2), 5), [0.5])
    driver = Driver({"current": noisy(0.95, 3), "control": noisy(0.4, 4)}, refusing(NO_CONTROL, only_control=True))
    decision = driver.run(decide_rise(evidence, SETTINGS))
    assert (decision.verdict, decision.missing) == ("unproven", NO_CONTROL)


@pytest.mark.parametrize(("drop", "verdict", "most"), [(0.005, "unchanged", 3.0), (0.03, "regressed", 3.0)])
def test_a_drop_that_cannot_count_ends_the_head_to_head(drop: float, verdict: str, most: float) -> None:
    generator = np.random.default_rng(1)

    def scores(level: float) -> Agent:
        return lambda rows, count: [generator.normal(level, 0.005, (len(rows), count)).clip(0, 1)]

    evidence = evidence_of(runs_of(scores(0.8 - drop), 1)[0], runs_of(scores(0.8), 5), [None])
    decision, _ = drive(evidence, scores(0.8 - drop), scores(0.8))
    assert decision.verdict == verdict
    assert decision.stage == "head-to-head"
    assert decision.cost.runs <= most


def test_at_most_max_cases_of_an_agent_that_repeats_run_again() -> None:
    before, after = [1.0] * 60, [0.0] * 5 + [1.0] * 15 + [0.4] * 40
    evidence = evidence_of(constant(after), [constant(before)] * 2, [0.3])
    decision, requests = drive(evidence, fixed(constant(after)), fixed(constant(before)))
    assert decision.verdict == "regressed"
    (request,) = requests
    assert len(request.iterations) == SETTINGS.max_cases
    assert {f"case-{row:04}" for row in range(5)} < request.iterations.keys()
    assert [case.proven for case in decision.cases] == [True] * 5
    assert len(decision.changed) == 45


def test_no_case_of_an_agent_that_repeats_is_proven_without_its_own_runs() -> None:
    before, after = [1.0] * 60, [0.0] * 60
    evidence = evidence_of(constant(after), [constant(before)] * 2, [0.5])
    decision, requests = drive(evidence, fixed(constant(after)), fixed(constant(before)))
    assert decision.verdict == "regressed"
    assert {case.case_id for case in decision.cases} == requests[0].iterations.keys()
    assert all(case.current.of and case.control.of for case in decision.cases)
