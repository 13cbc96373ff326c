"""Cells of pull requests that evade the gate: failures that are reported as lost, and repeated attempts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from benchmarks.gate.driver import decide_one, evidence_of, extra_runs, maker, scores_of
from benchmarks.gate.tally import Measures
from benchmarks.gate.worlds import (
    Agent,
    Arrays,
    Day,
    World,
    changed,
    days,
    draw_agent,
    error_share,
    lose,
    make_run,
)

from agenteval.compare.regression.model import Burden, Decision, Side
from agenteval.compare.regression.settings import GateSettings

_THRESHOLD = 0.5
# Attempts after the first one.
_FURTHER = 4


@dataclass(frozen=True, kw_only=True)
class Losses:
    """A pull request that reports a part of its failures as lost, beside real losses.

    Args:
        change: the change.
        hidden: share of the agent's failures that are lost.
        only_new: whether only failures are lost that the change made.
        errors: median share of really lost iterations of a run.
        alike: whether the runs of the pull request and of the control have the same error rate.
        settings: limits of the gate.
    """

    change: str = "none"
    hidden: float = 0.0
    only_new: bool = False
    errors: float = 0.0
    alike: bool = True
    settings: GateSettings

    def replicate(self, generator: np.random.Generator) -> Measures:
        """Return how the gate decided: unproven or red because of losses, red without them, or green."""
        world = World()
        before = draw_agent(world, generator)
        after = changed(before, self.change, generator)
        hidden = np.full(world.cases, self.hidden)
        if self.only_new:
            hidden *= np.clip((before.rates - after.rates) / np.maximum(1 - after.rates, 1e-6), 0, 1)
        usual = error_share(self.errors, generator)

        def lossy(run: Arrays) -> Arrays:
            share = usual if self.alike else error_share(self.errors, generator)
            return lose(run, generator.random(run[0].shape) < share)

        def make(side: Side, iterations: int) -> Arrays:
            run = make_run(after if side == "current" else before, world, iterations, Day(), generator)
            if side == "current":
                run = lose(run, (run[0] < _THRESHOLD) & (generator.random(run[0].shape) < hidden[:, None]))
            return lossy(run)

        def earlier() -> Arrays:
            run = make_run(before, world, world.iterations, Day(), generator)
            return lose(run, generator.random(run[0].shape) < error_share(self.errors, generator))

        pool = [scores_of(earlier()) for _ in range(world.runs)]
        first = scores_of(make("current", world.iterations))
        evidence = evidence_of(world, before, first, pool, int(generator.integers(2**63)))
        decision = decide_one(evidence, self.settings, make)
        is_green = decision.verdict in {"unchanged", "improved"}
        return {
            "not green by losses": [float(not is_green and decision.losses)],
            "red": [float(not is_green and not decision.losses)],
            "green": [float(is_green)],
        }


@dataclass(frozen=True, kw_only=True)
class Attempts:
    """A bad pull request that was red is pushed again and again, without and with the memory of the red attempt.

    Args:
        change: the change.
        settings: limits of the gate.
    """

    change: str
    settings: GateSettings

    def replicate(self, generator: np.random.Generator) -> Measures:
        """Return whether the first attempt was red; if so, whether a later one or the repaired agent is green."""
        world = World()
        before = draw_agent(world, generator)
        after = changed(before, self.change, generator)
        calendar = days(world, generator)
        pool = [
            scores_of(make_run(before, world, world.iterations, next(calendar), generator)) for _ in range(world.runs)
        ]

        def attempt(agent: Agent, burden: Burden | None) -> Decision:
            day = next(calendar)
            first = scores_of(make_run(agent, world, world.iterations, day, generator))
            evidence = evidence_of(world, before, first, pool, int(generator.integers(2**63)))
            make = maker(world, {"current": agent, "control": before}, day, generator)
            return decide_one(evidence, self.settings, make, burden)

        first = attempt(after, None)
        if first.verdict != "regressed":
            return {"red at first": [0.0]}
        burden = burden_of(first)
        fresh = any(attempt(after, None).verdict != "regressed" for _ in range(_FURTHER))
        costs, is_green = [], False
        for _ in range(_FURTHER):
            again = attempt(after, burden)
            costs.append(extra_runs(again, world))
            if is_green := again.verdict != "regressed":
                break
        return {
            "red at first": [1.0],
            "green without memory": [float(fresh)],
            "green with memory": [float(is_green)],
            "repaired: green": [float(attempt(before, burden).verdict != "regressed")],
            "runs per attempt": costs,
        }


def burden_of(decision: Decision) -> Burden:
    """Return what a decision has proven, for the next attempt."""
    return Burden(
        means={metric.metric: metric.control - metric.current for metric in decision.metrics if metric.proven},
        cases={(case.metric, case.case_id): case.fall for case in decision.cases if case.proven},
    )
