"""Cells of a slow decline on the base branch, and of the long look that finds it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from benchmarks.gate.driver import drive, evidence_of, maker, scores_of
from benchmarks.gate.repository import Pool, Repository
from benchmarks.gate.tally import Measures
from benchmarks.gate.worlds import Agent, Day, World, draw_agent

from agenteval.compare.regression.cusum import is_due, next_sum
from agenteval.compare.regression.long_look import decide_long_look
from agenteval.compare.regression.settings import GateSettings


@dataclass(frozen=True, kw_only=True)
class Decline:
    """Every merge loses a little; the base branch's long look compares the tip with the first commit of the epoch.

    It is made after ten merges, or earlier if the sum of deviations of the base branch's runs is large.

    Args:
        world: the world.
        loss: loss of the mean per merge, in points.
        merges: number of merges.
        settings: limits of the gate.
    """

    world: World
    loss: float
    merges: int
    settings: GateSettings

    def replicate(self, generator: np.random.Generator) -> Measures:
        """Return whether the decline was found, what was lost until then, and the cost per merge."""
        repository = Repository.of(self.world, self.settings, generator)
        first = tip = draw_agent(self.world, generator)
        runs = [repository.run(first, next(repository.calendar)) for _ in range(10)]
        pool = [scores_of(run) for run in runs]
        watch = Watch([float(run[0].mean()) for run in runs], self.settings.min_effect)
        blocked: list[float] = []
        costs: list[float] = []
        for _ in range(self.merges):
            if self.loss:
                lower = tip.lower(self.loss / 100)
                red = repository.pull_request(lower, tip, pool).verdict == "regressed"
                blocked.append(red)
                tip = tip if red else lower
            day = next(repository.calendar)
            run = repository.run(tip, day)
            pool = [*pool, scores_of(run)][-self.settings.window :]
            costs.append(0.0)
            if watch.is_due(float(run[0].mean())):
                is_proven, costs[-1] = _long_look(repository, tip, first, pool, day)
                if is_proven:
                    lost = 100 * float(first.rates.mean() - tip.rates.mean())
                    return {"blocked": blocked, "alarm": [1.0], "lost": [lost], "runs per merge": costs}
        return {"blocked": blocked, "alarm": [0.0], "runs per merge": costs}


@dataclass
class Watch:
    """The sum of the base branch's runs, and the merges since the last long look.

    Args:
        reference: means of the epoch's first runs.
        min_effect: smallest drop that counts.
    """

    reference: list[float]
    min_effect: float
    total: float = 0.0
    merges: int = 0

    def is_due(self, level: float) -> bool:
        """Return whether a long look is due after a run with some mean; then the sum and the count begin again."""
        self.total = next_sum(self.total, self.reference, level, self.min_effect)
        self.merges += 1
        if not is_due([self.total], self.merges):
            return False
        self.total, self.merges = 0.0, 0
        return True


def _long_look(repository: Repository, tip: Agent, first: Agent, pool: Pool, day: Day) -> tuple[bool, float]:
    """Return whether the tip is proven to be lower than the first commit, at half the strict limits, and the cost."""
    evidence = evidence_of(repository.world, first, pool[-1], pool, repository.seed())
    make = maker(repository.world, {"current": tip, "control": first}, day, repository.generator)
    decision = drive(decide_long_look(evidence, repository.settings), make)
    return decision.verdict == "regressed", decision.cost.runs
