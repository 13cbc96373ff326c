"""A repository over time: the pool, pull requests, and merges that the base branch compares with their parents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from benchmarks.gate.driver import Make, decide_one, drive, evidence_of, extra_runs, maker, scores_of
from benchmarks.gate.worlds import Agent, Arrays, Day, World, days, make_run

from agenteval.compare.regression.decide import decide, decide_rise
from agenteval.compare.regression.model import Decision, Scores, Side
from agenteval.compare.regression.settings import GateSettings

Pool = list[Scores]


@dataclass(frozen=True)
class Repository:
    """A world with its calendar.

    Args:
        world: the world.
        settings: limits of the gate.
        generator: the source of all chance.
        calendar: the days.
    """

    world: World
    settings: GateSettings
    generator: np.random.Generator
    calendar: Iterator[Day]

    @classmethod
    def of(cls, world: World, settings: GateSettings, generator: np.random.Generator) -> Repository:
        """Return a repository on its first day."""
        return cls(world, settings, generator, days(world, generator))

    def run(self, agent: Agent, day: Day) -> Arrays:
        """Return a run of the suite."""
        return make_run(agent, self.world, self.world.iterations, day, self.generator)

    def pool(self, agent: Agent, runs: int) -> Pool:
        """Return a pool of runs on successive days."""
        return [scores_of(self.run(agent, next(self.calendar))) for _ in range(runs)]

    def seed(self) -> int:
        """Return a seed for the gate."""
        return int(self.generator.integers(2**63))

    def pull_request(self, current: Agent, control: Agent, pool: Pool) -> Decision:
        """Return the decision about a pull request, on the next day."""
        day = next(self.calendar)
        first = scores_of(self.run(current, day))
        evidence = evidence_of(self.world, control, first, pool, self.seed())
        make = maker(self.world, {"current": current, "control": control}, day, self.generator)
        return decide_one(evidence, self.settings, make)

    def merge(self, tip: Agent, parent: Agent, pool: Pool) -> Merged:
        """Run the base branch after a merge, on the next day, and compare it with its parent in both directions."""
        day = next(self.calendar)
        # Runs of the base branch are whole: they tell which cases are settled.
        whole = replace(self.world, staged=False)
        first = scores_of(self.run(tip, day))
        make = maker(self.world, {"current": tip, "control": parent}, day, self.generator)
        extra, proven_cases = 0.0, set()
        for decide_direction in (decide, decide_rise):
            runs = _WholeRuns(make, self.world.iterations)
            evidence = evidence_of(whole, parent, first, pool, self.seed())
            decision = drive(decide_direction(evidence, self.settings), runs)
            extra += extra_runs(decision, self.world)
            if decision.verdict in {"regressed", "improved"} and any(metric.proven for metric in decision.metrics):
                return Merged([first, *map(scores_of, runs.complete)][-self.settings.window :], True, extra)
            proven_cases |= {case.case_id for case in decision.cases if case.proven}
        kept = [{case: scores for case, scores in run.items() if case not in proven_cases} for run in pool]
        return Merged([*kept, first][-self.settings.window :], False, extra)


@dataclass(frozen=True)
class Merged:
    """The pool after a run of the base branch, whether a new epoch began, and the cost of the run's head-to-heads."""

    pool: Pool
    is_new_epoch: bool
    extra: float


@dataclass
class _WholeRuns:
    """Makes runs, and keeps those of the agent under test that add up to a run of the suite."""

    make: Make
    iterations: int
    complete: list[Arrays] = field(default_factory=list)
    part: list[Arrays] = field(default_factory=list)

    def __call__(self, side: Side, iterations: int) -> Arrays:
        made = self.make(side, iterations)
        if side == "current":
            self.part.append(made)
            joined = [np.concatenate(scores, axis=1) for scores in zip(*self.part, strict=True)]
            if joined[0].shape[1] >= self.iterations:
                self.complete.append(joined)
                self.part = []
        return made
