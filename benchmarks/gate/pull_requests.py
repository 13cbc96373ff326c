"""Cells of single pull requests: the usual case, agents that repeat their answers, and the bound on green."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from benchmarks.gate.driver import decide_one, evidence_of, extra_runs, first_calls, maker, scores_of
from benchmarks.gate.tally import Measures
from benchmarks.gate.worlds import Agent, Arrays, Day, World, changed, days, draw_agent, held, make_run

from agenteval.compare.regression.model import Evidence, GatingMetric, Side
from agenteval.compare.regression.power import difference_to_pool
from agenteval.compare.regression.settings import GateSettings
from agenteval.compare.regression.trial import start


@dataclass(frozen=True, kw_only=True)
class PullRequest:
    """A pull request with a change, in a world.

    Args:
        world: the world.
        change: the change, as in `worlds.changed`.
        settings: limits of the gate.
        series: another number gives other random draws.
    """

    world: World = field(default_factory=World)
    change: str = "none"
    settings: GateSettings
    series: int = 0

    def replicate(self, generator: np.random.Generator) -> Measures:
        """Return whether one pull request was blocked, by what, and the cost."""
        world = self.world
        before = draw_agent(world, generator)
        after = changed(before, self.change, generator)
        if world.noise == "sticky":
            scores, sides, day = self._sticky_sessions(before, after, generator)
        else:
            calendar = days(world, generator)
            scores = [make_run(before, world, world.iterations, next(calendar), generator) for _ in range(world.runs)]
            day = _stepped(next(calendar), world)
            scores.append(make_run(after, world, world.iterations, day, generator))
            sides = {"current": after, "control": before}
            day = day if world.same_day else next(calendar)
        *pool, first = map(scores_of, scores)
        evidence = evidence_of(world, before, first, pool, int(generator.integers(2**63)))
        decision = decide_one(evidence, self.settings, maker(world, sides, day, generator))
        red = decision.verdict == "regressed"
        measures = {
            **({"first run": [first_calls(evidence, world)]} if world.staged else {}),
            "extra": [extra_runs(decision, world)],
            "unproven": [float(decision.verdict == "unproven")],
            "repeats": [float(decision.repeats)],
        }
        return {"false alarm" if self.change == "none" else "found": [float(red)], **measures}

    def _sticky_sessions(
        self, before: Agent, after: Agent, generator: np.random.Generator
    ) -> tuple[list[Arrays], dict[Side, Agent], Day]:
        """Return runs where each session keeps its pass rates; a step comes after the first run."""
        world = self.world
        agents = [*[before] * world.runs, after]
        scores = [make_run(held(agent, generator), world, world.iterations, Day(), generator) for agent in agents]
        sides: dict[Side, Agent] = {"current": held(after, generator), "control": held(before, generator)}
        return scores, sides, _stepped(Day(), world)


def _stepped(day: Day, world: World) -> Day:
    return replace(day, shift=day.shift + world.step)


@dataclass(frozen=True, kw_only=True)
class Repeating:
    """A pull request of an agent that repeats its answers, with five metrics, the first of them pass or fail.

    Args:
        change: ``none``; ``one 1 to 0`` and ``three 1 to 0``: so many cases fail; ``all scores -.34``: those of the
            second metric; ``one score -.3``: one score of the second metric, which has no threshold.
        cases: number of cases.
        runs: runs in the pool.
        settings: limits of the gate.
    """

    change: str
    cases: int
    runs: int
    settings: GateSettings

    def replicate(self, generator: np.random.Generator) -> Measures:
        """Return whether one pull request was blocked, and the cost."""
        world = World(cases=self.cases, runs=self.runs)
        good = generator.random(self.cases) < 0.8
        good[:3] = True
        control = [good.astype(np.float64), *(np.round(generator.uniform(0.6, 1, self.cases), 2) for _ in range(4))]
        current = [values.copy() for values in control]
        if self.change.endswith("1 to 0"):
            current[0][: {"one": 1, "three": 3}[self.change.split()[0]]] = 0.0
        elif self.change == "all scores -.34":
            current[1] = np.clip(current[1] - 0.34, 0, 1)
        elif self.change == "one score -.3":
            current[1][0] -= 0.3
        values = {"current": current, "control": control}

        def make(side: Side, iterations: int) -> Arrays:
            return [np.repeat(column[:, None], iterations, axis=1) for column in values[side]]

        first, before = (scores_of(make(side, world.iterations)) for side in ("current", "control"))
        thresholds = dict.fromkeys(first, 0.5)
        evidence = Evidence(
            metrics=tuple(
                GatingMetric(id=f"m{number}", thresholds={} if number else thresholds) for number in range(5)
            ),
            first=first,
            pool=(before,) * self.runs,
            iterations=dict.fromkeys(first, world.iterations),
            seed=int(generator.integers(2**63)),
        )
        decision = decide_one(evidence, self.settings, make)
        key = "false alarm" if self.change == "none" else "found"
        return {key: [float(decision.verdict == "regressed")], "extra": [extra_runs(decision, world)]}


@dataclass(frozen=True, kw_only=True)
class Bound:
    """Whether the largest drop that a first run does not exclude is at least the real drop, and how large it is."""

    world: World = field(default_factory=World)
    change: str = "none"
    settings: GateSettings

    def replicate(self, generator: np.random.Generator) -> Measures:
        """Return whether the bound covers the drop, and the bound."""
        world = self.world
        before = draw_agent(world, generator)
        after = changed(before, self.change, generator)
        calendar = days(world, generator)
        agents = [*[before] * world.runs, after]
        *pool, first = (
            scores_of(make_run(agent, world, world.iterations, next(calendar), generator)) for agent in agents
        )
        evidence = evidence_of(world, before, first, pool, int(generator.integers(2**63)))
        trial = start(evidence, self.settings, mirrored=False)
        difference = difference_to_pool(trial.first, trial.pool, 0, evidence.metrics[0].step, trial.unit_of)
        if difference is None:
            raise AssertionError("every case has scores on both sides")
        bound = difference.bound
        drop = float((before.rates - after.rates).mean())
        return {"covers": [float(drop <= bound + 1e-9)], "bound": [bound]}
