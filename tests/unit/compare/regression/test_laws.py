"""What holds for every input: the laws of the gate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.compare.regression.golden import World, world
from tests.unit.compare.regression.worlds import Agent, Array, Driver, evidence_of

from agenteval.compare.regression.case_test import rerun_q
from agenteval.compare.regression.decide import decide, decide_rise
from agenteval.compare.regression.interval import Inversion
from agenteval.compare.regression.labels import adjusted_p, compare_runs
from agenteval.compare.regression.model import Decision, Evidence, Failures, GatingMetric, Request, Scores, Side
from agenteval.compare.regression.runs import Run, layout_of
from agenteval.compare.regression.settings import GateSettings

SETTINGS = GateSettings(draws=499, exact_limit=1024, head_to_head_calls=0)
WORLDS = st.integers(0, 100_000)
FEW = settings(max_examples=40, deadline=None)


def decided(made: World) -> Decision:
    evidence = evidence_of(made.first, made.pool, made.thresholds, seed=made.number, units=made.units)
    driver = Driver({"current": made.agent(is_control=False), "control": made.agent(is_control=True)})
    return driver.run(decide(evidence, SETTINGS))


def run_of(values: list[np.typing.NDArray[np.float64]]) -> Run:
    return Run(tuple(values), tuple(np.zeros(value.shape, dtype=np.bool_) for value in values))


@FEW
@given(st.integers(1, 4), st.integers(2, 20), st.integers(0, 10_000))
def test_five_identical_metrics_have_the_p_of_one(runs: int, cases: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    sides = [[np.round(generator.random((cases, 2)), 1) for _ in range(runs)] for _ in range(2)]
    one, five = (
        compare_runs(
            [run_of([run] * metrics) for run in sides[0]],
            [run_of([run] * metrics) for run in sides[1]],
            np.arange(cases),
            (seed,),
            SETTINGS,
        )
        for metrics in (1, 5)
    )
    assert five.p.tolist() == pytest.approx([float(one.p[0])] * 5, abs=1e-12)


def test_an_interval_of_scores_that_hardly_vary_has_its_ends_in_order() -> None:
    generator = np.random.default_rng(1)
    for drop in np.geomspace(1e-6, 1e-2, 20):
        own, other = (
            [run_of([level + generator.normal(0, 1e-8, (50, 3))]) for _ in range(4)] for level in (0.8 - drop, 0.8)
        )
        lower, upper = Inversion(own, other, np.arange(50), (1, 13), SETTINGS).interval(0, 0.05)
        assert lower <= upper < 0
        assert (lower, upper) == pytest.approx((-drop, -drop), abs=1e-6)


@FEW
@given(st.integers(1, 4), st.integers(1, 16), st.integers(1, 4), st.integers(0, 10_000), st.floats(0.001, 0.499))
def test_the_interval_excludes_zero_exactly_if_the_test_rejects(
    runs: int, cases: int, metrics: int, seed: int, level: float
) -> None:
    generator = np.random.default_rng(seed)
    shift = generator.choice([0.0, 0.3])
    sides = [
        [
            run_of([(generator.random((cases, 2)) > 0.2 + side * shift).astype(np.float64) for _ in range(metrics)])
            for _ in range(runs)
        ]
        for side in (1, 0)
    ]
    units = np.arange(cases) // 2
    inversion = Inversion(sides[0], sides[1], units, (seed, 7), SETTINGS)
    test = compare_runs(sides[0], sides[1], units, (seed, 7), SETTINGS)
    rise = adjusted_p([-table for table in test.tables], (seed, 7), SETTINGS)
    for metric in range(metrics):
        lower, upper = inversion.interval(metric, level)
        assert (upper < 0) == (test.p[metric] <= level + 1e-9)
        assert (lower > 0) == (rise[metric] <= level + 1e-9)
        assert -1 <= lower <= 1
        assert -1 <= upper <= 1
        # With a level near one half, the error of the random labels decides.
        if test.p[metric] <= 0.5 and level < 0.4:
            assert lower <= test.differences[metric] + 1e-6


@FEW
@given(WORLDS)
def test_the_findings_of_a_decision_agree(number: int) -> None:
    decision = decided(world(number))
    proven = [finding for finding in decision.metrics if finding.proven]
    assert (decision.verdict == "regressed") == bool(proven or any(case.proven for case in decision.cases))
    for case in decision.cases:
        if case.proven and not decision.repeats:
            assert case.q is not None
            assert case.limit is not None
            assert case.q <= case.limit
    for finding in decision.metrics:
        if finding.interval is None:
            continue
        assert finding.p is not None
        assert finding.limit is not None
        assert (finding.interval[1] < 0) == (finding.p <= finding.limit + 1e-9)
        difference = finding.current - finding.control
        assert finding.proven == (finding.p <= finding.limit + 1e-9 and difference <= -SETTINGS.min_effect + 1e-9)


@FEW
@given(WORLDS)
def test_equal_inputs_have_equal_decisions(number: int) -> None:
    assert decided(world(number)) == decided(world(number))


@FEW
@given(WORLDS)
def test_a_rise_is_the_drop_of_mirrored_scores(number: int) -> None:
    made = world(number)
    mirrored = World(
        number,
        [1 - values for values in made.first],
        [[1 - values for values in run] for run in made.pool],
        made.thresholds,
        made.units,
        made.rates,
        made.changed,
    )

    def flipped(agent: Agent) -> Agent:
        return lambda rows, count: [1 - values for values in agent(rows, count)]

    evidence = evidence_of(mirrored.first, mirrored.pool, [None if t is None else 0.5 for t in made.thresholds])
    evidence = replace(evidence, seed=number)
    if made.units is not None:
        evidence = replace(
            evidence, clusters={f"case-{case:04}": f"u{unit:03}" for case, unit in enumerate(made.units)}
        )
    driver = Driver(
        {
            "current": flipped(made.agent(is_control=False)),
            "control": flipped(made.agent(is_control=True)),
        }
    )
    rise, drop = driver.run(decide_rise(evidence, SETTINGS)), decided(made)
    assert (rise.verdict == "improved") == (drop.verdict == "regressed")
    assert [look.p for look in rise.looks] == pytest.approx([look.p for look in drop.looks], abs=1e-9)
    assert [look.difference for look in rise.looks] == pytest.approx([-look.difference for look in drop.looks])
    for up, down in zip(rise.metrics, drop.metrics, strict=True):
        assert up.proven == down.proven
        assert up.baseline == pytest.approx(1 - down.baseline)
        if up.interval is not None and down.interval is not None:
            assert up.interval == pytest.approx((-down.interval[1], -down.interval[0]), abs=1e-6)


@FEW
@given(st.integers(1, 4), st.integers(2, 7), st.integers(0, 10_000), st.data())
def test_one_more_failure_never_raises_p(runs: int, cases: int, seed: int, data: st.DataObject) -> None:
    generator = np.random.default_rng(seed)
    exact = replace(SETTINGS, exact_limit=10**6)
    cases = min(cases, {1: 7, 2: 5, 3: 3, 4: 2}[runs])
    own, other = ([(generator.random((cases, 2)) < 0.8).astype(np.float64) for _ in range(runs)] for _ in range(2))
    worse = [values.copy() for values in own]
    worse[data.draw(st.integers(0, runs - 1))][data.draw(st.integers(0, cases - 1)), data.draw(st.integers(0, 1))] = 0
    before, after = (
        compare_runs([run_of([v]) for v in side], [run_of([v]) for v in other], np.arange(cases), (seed,), exact)
        for side in (own, worse)
    )
    assert after.differences[0] <= before.differences[0] + 1e-12
    if before.p[0] <= 0.25:
        assert after.p[0] <= before.p[0] + 1e-12


@FEW
@given(st.integers(1, 12), st.integers(0, 12), st.integers(0, 12), st.sampled_from([0.0, 0.1, 0.5]))
def test_one_more_failed_rerun_never_raises_q(repeats: int, current: int, control: int, correlation: float) -> None:
    current, control = min(current, repeats - 1), min(control, repeats)
    before, after = (
        rerun_q(Failures(failed, repeats), Failures(control, repeats), correlation)
        for failed in (current, current + 1)
    )
    assert after <= before + 1e-12


@dataclass
class Fated(Driver):
    """A driver whose answers are laid down in advance: each iteration of each case, in runs and in re-runs."""

    runs: dict[Side, Array] = field(default_factory=dict)
    reruns: dict[Side, Array] = field(default_factory=dict)
    used: Counter[tuple[Side, bool, int]] = field(default_factory=Counter)

    def answer(self, side: Side, request: Request) -> Scores:
        fate = (self.runs if request.is_whole else self.reruns)[side]
        scores: dict[str, dict[str, tuple[float, ...]]] = {}
        for name, count in request.iterations.items():
            row = int(name.removeprefix("case-"))
            start = self.used[side, request.is_whole, row]
            self.used[side, request.is_whole, row] += count
            scores[name] = {"m0": tuple(fate[row, start : start + count].tolist())}
        return scores


@dataclass
class Fate:
    """A suite with one metric, and all scores that its runs could get."""

    number: int
    first: Array
    pool: list[Array]
    runs: dict[Side, Array]
    reruns: dict[Side, Array]

    def decide(self) -> Decision:
        evidence = evidence_of([self.first], [[run] for run in self.pool], [0.5], seed=self.number)
        driver = Fated({}, runs=self.runs, reruns=self.reruns)
        # All labels are enumerated: random ones depend on which cases differ.
        return driver.run(decide(evidence, replace(SETTINGS, exact_limit=2_000)))


def fate(number: int) -> Fate:
    """Return a suite of at most six cases with a change."""
    generator = np.random.default_rng(number)
    cases, iterations = int(generator.integers(2, 7)), int(generator.integers(1, 4))
    rates = generator.choice([0.5, 0.9, 1.0], (cases, 1))
    changed = rates * generator.choice([0.0, 0.3, 1.0], (cases, 1))

    def scores(rate: Array, count: int) -> Array:
        return (generator.random((cases, count)) < rate).astype(np.float64)

    sides: list[tuple[Side, Array]] = [("current", changed), ("control", rates)]
    return Fate(
        number,
        scores(changed, iterations),
        [scores(rates, iterations) for _ in range(3)],
        {side: scores(rate, 4 * iterations) for side, rate in sides},
        {side: scores(rate, 24) for side, rate in sides},
    )


def red_fates(count: int) -> Iterator[Fate]:
    """Yield suites whose decision is red, but not because nothing varies."""
    for number in range(count):
        found = fate(number).decide()
        if found.verdict == "regressed" and not found.repeats:
            yield fate(number)


@pytest.mark.long
def test_one_more_failure_never_turns_red_into_green() -> None:
    tried = 0
    for made in red_fates(60):
        for scores in (made.first, made.runs["current"], made.reruns["current"]):
            for row, column in np.argwhere(scores == 1.0)[made.number % 7 :: 7]:
                scores[row, column] = 0.0
                assert made.decide().verdict == "regressed", (made.number, row, column)
                scores[row, column] = 1.0
                tried += 1
    assert tried > 30


@pytest.mark.long
def test_a_lost_iteration_never_turns_red_into_green() -> None:
    tried = 0
    for made in red_fates(45):
        for scores in (made.first, *made.runs.values(), *made.reruns.values()):
            for row, column in np.argwhere(~np.isnan(scores))[made.number % 7 :: 7]:
                before = scores[row, column]
                scores[row, column] = np.nan
                assert made.decide().verdict != "unchanged", (made.number, row, column)
                scores[row, column] = before
                tried += 1
    assert tried > 30


@given(st.data())
def test_no_input_is_an_error(data: st.DataObject) -> None:
    score = st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0, float("nan"), 7.0, -1.0, float("inf")]))
    cases = st.sampled_from(["a", "b", "c", "d"])
    scores = st.dictionaries(
        cases,
        st.dictionaries(st.sampled_from(["m", "n", "other"]), st.lists(score, max_size=3).map(tuple)),
        max_size=4,
    )
    evidence = Evidence(
        metrics=data.draw(
            st.sampled_from([(), (GatingMetric(id="m", thresholds={"a": 0.5, "b": 1.0}),)])
            | st.just((GatingMetric(id="m", thresholds={"a": 0.5}), GatingMetric(id="n", thresholds={}, step=0.1)))
        ),
        first=data.draw(scores),
        pool=tuple(data.draw(st.lists(scores, max_size=4))),
        clusters=data.draw(st.dictionaries(cases, st.sampled_from(["a", "x"]))),
        repeats=data.draw(st.booleans()),
        iterations=data.draw(st.dictionaries(cases, st.integers(0, 3))),
        seed=data.draw(st.integers(-3, 2**70)),
    )
    few = replace(SETTINGS, draws=50, exact_limit=20)
    gate = data.draw(st.sampled_from([decide, decide_rise]))(evidence, few)
    answer = None
    for _ in range(200):
        try:
            request = next(gate) if answer is None else gate.send(answer)
        except StopIteration as stop:
            decision: Decision = stop.value
            break
        answer = {side: data.draw(scores) for side in request.sides}
    else:
        pytest.fail("the gate does not end")
    numbers = [
        value for finding in decision.metrics for value in (finding.baseline, finding.current, finding.control)
    ]
    assert np.isfinite([*numbers, *decision.lost, decision.cost.runs]).all()


def test_layouts_sort_cases_and_keep_clusters_apart_from_cases() -> None:
    evidence = evidence_of([np.ones((3, 1))], [], [0.5])
    evidence = replace(evidence, clusters={"case-0000": "case-0002", "case-0001": "case-0002"})
    layout = layout_of(evidence, mirrored=False)
    assert layout.unit_of[0] == layout.unit_of[1] != layout.unit_of[2]
