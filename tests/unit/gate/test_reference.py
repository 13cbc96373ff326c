"""The program's gate decides as the reference does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from benchmarks.gate import program, reference
from benchmarks.gate.worlds import World, attempt, job, metrics

from agenteval.gate import suspicion
from agenteval.gate.proof import no_worse, pairs_needed, still_there
from agenteval.gate.values import Constants, GateMetric

# One input is a world with a change, and its own random numbers.
_WORLDS = [
    World(N=12),
    World(N=20, k=1),
    World(N=3, R=1),
    World(N=12, R=3, mix="flaky"),
    World(N=10, k=1, R=1),
    World(N=15, kind="bimodal", metrics=3),
    World(N=12, kind="judge", upgrade=0.08),
    World(N=12, kind="latency", slack=0.0953, step=-0.7),
    World(N=12, lost=0.1),
    World(N=12, lost=0.3, hard=True, step=-0.7),
    World(N=12, caching="session"),
    World(N=12, caching="side", mix="half"),
    World(N=12, step=-1.5),
]
_CHANGES = ["none", "mean 20", "one 0", "errors 20", "mean 40"]
_INPUTS = len(_WORLDS) * len(_CHANGES)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def _again(again: Callable[..., program.Arrays], rng: np.random.Generator) -> program.Again:
    """Answer each side by numbers of a case, so that the order of the sides does not matter."""
    streams = {side: [rng.integers(2**32) for _ in range(400)] for side in ("pr", "base")}
    made = {"pr": 0, "base": 0}

    def answer(side: str, rows: np.ndarray) -> program.Arrays:
        number = made[side]
        made[side] += 1
        return again(side, rows, np.random.default_rng(streams[side][number]))

    return answer


def _pull_request(
    index: int,
) -> tuple[World, program.Arrays, list[program.Arrays], Callable[..., program.Arrays]]:
    world = _WORLDS[index % len(_WORLDS)]
    change = _CHANGES[(index // len(_WORLDS)) % len(_CHANGES)]
    if world.kind == "latency":
        change = "slow .3" if change != "none" else change
    rng = np.random.default_rng([7, index])
    before, after, baseline, first, _ = attempt(world, change, rng)

    def again(side: str, rows: np.ndarray, stream: np.random.Generator) -> program.Arrays:
        _, ask = job(world, before, after, stream)
        found: program.Arrays = ask(side, rows)
        return found

    return world, first, baseline, again


@pytest.mark.parametrize("has_base", [True, False])
def test_decides_as_the_reference(has_base: bool) -> None:
    words = set()
    for index in range(_INPUTS):
        world, first, baseline, again = _pull_request(index)
        theirs = reference.gate(
            first, baseline, metrics(world), _again(again, np.random.default_rng(index)), has_base=has_base
        )
        ours = program.gate(
            first, baseline, metrics(world), _again(again, np.random.default_rng(index)), has_base=has_base
        )
        assert ours.state == theirs.state, index
        assert ours.calls == theirs.calls, index
        assert ours.pairs == theirs.pairs, index
        proven = {(t.metric, t.case): t for t in ours.proofs}
        assert {key for key in proven if key[1] is None} == {(name, None) for name in theirs.means}
        for name, (gap, p, limit) in theirs.means.items():
            test = proven[name, None]
            assert (test.difference, test.limit) == pytest.approx((gap, limit), abs=1e-10)
            assert test.p == pytest.approx(p, abs=1e-10)
        for (name, row), (failed, base_failed, p, _) in theirs.cases.items():
            test = proven[name, f"{row:03}"]
            assert (test.failed, test.base_failed) == (failed, base_failed)
            assert test.p == pytest.approx(p, abs=1e-10)
        words.add(ours.state)
    assert words >= (
        {"clear", "cleared", "proven", "unproven"} if has_base else {"clear", "cleared", "suspicious", "unproven"}
    )


def test_suspects_as_the_reference() -> None:
    for index in range(_INPUTS):
        world, first, baseline, _ = _pull_request(index)
        rules = reference.Rules()
        for name, metric in metrics(world).items():
            arrays = [run[name] for run in baseline]
            values = [program.values_of(array) for array in arrays]
            now, ours = program.values_of(first[name]), program.metrics_of({name: metric})[name]
            expected = reference.suspicion(first[name], arrays, metric)
            found = suspicion.mean_suspicion(now, values, ours)
            # Above this p nothing is decided, and rounding tells equal means apart.
            if min(expected, found) < 0.45:
                assert found == pytest.approx(expected, abs=1e-10), index
            cases = {f"{row:03}": p for p, row in reference.case_suspicions(first[name], arrays, metric, rules)}
            assert {
                case: p for p, case in suspicion.case_suspicions(now, values, ours, Constants())
            } == pytest.approx(cases)
        names = list(metrics(world))
        own = [program.run_of(run) for run in baseline]
        assert suspicion.are_copies([run[names[0]] for run in own]) == reference.copies(baseline)
        ours_alone = suspicion.is_unproven_alone(
            program.run_of(first), own, program.metrics_of(metrics(world)), Constants()
        )
        assert ours_alone == reference.unaided(first, baseline, metrics(world), rules)


def test_answers_other_questions_as_the_reference() -> None:
    asked = [f"{row:03}" for row in range(12)]
    for index in range(20):
        world, first, baseline, again = _pull_request(index * len(_WORLDS))
        seed = np.random.default_rng(index)
        # Lost passes are centred by case here, and not in the reference.
        if any(np.isnan(run["m0"]).any() for run in (first, *baseline)) or index % len(_CHANGES) == _CHANGES.index(
            "errors 20"
        ):
            continue
        lower = reference.no_worse(_again(again, np.random.default_rng(index)), "m0", 0.1, 8, world.N)
        outcome = program.answered(
            no_worse({"m0": GateMetric()}, 0.1, 8, asked, Constants()), _again(again, np.random.default_rng(index))
        )
        # Halving ends between the floating-point numbers around the quantile.
        assert outcome.tests[0].low == pytest.approx(lower[1], abs=1e-9)
        assert lower[0] or outcome.state != "cleared"
        arrays = [run["m0"] for run in baseline]
        needed = pairs_needed([program.values_of(array) for array in arrays], 0.05)
        assert needed == reference.pairs_needed(arrays, 0.05)
        red = reference.gate(first, baseline, metrics(world), _again(again, np.random.default_rng(index)))
        ours = program.gate(first, baseline, metrics(world), _again(again, np.random.default_rng(index)))
        if red.state == "proven":
            fresh = seed.integers(2**32)
            still = reference.still_there(red, metrics(world), _again(again, np.random.default_rng(fresh)), world.N)
            found = program.answered(
                still_there(
                    ours.proofs, program.metrics_of(metrics(world)), {"m0": asked, "answered": asked}, Constants()
                ),
                _again(again, np.random.default_rng(fresh)),
            )
            assert (found.state == "proven") == still


def test_the_order_of_the_sides_is_balanced_and_drawn() -> None:
    """Of four pairs each side begins two, and not always the same ones."""
    orders = set()
    for seed in range(20):
        sides: list[str] = []
        zeros, ones = np.zeros((50, 3)), np.ones((50, 3))

        def again(side: str, rows: np.ndarray, sides: list[str] = sides) -> program.Arrays:
            sides.append(side)
            return {"m": np.full(len(rows), float(side == "base"))}

        program.gate({"m": zeros}, [{"m": ones}] * 3, {"m": reference.Metric()}, again, seed=seed)
        beside = sides[3:]
        firsts = tuple(beside[0:8:2])
        assert sorted(firsts) == ["base", "base", "pr", "pr"]
        orders.add(firsts)
    assert len(orders) > 1
