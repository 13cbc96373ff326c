"""Cells of a slow decline on the base branch, and of the long look that finds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from benchmarks.gate.driver import drive, evidence_of, maker, scores_of
from benchmarks.gate.repository import Pool, Repository
from benchmarks.gate.tally import Measures
from benchmarks.gate.worlds import Agent, Day, World, draw_agent

from agenteval.compare.regression.mean_proof import compare_side_by_side
from agenteval.compare.regression.settings import GateSettings
from agenteval.compare.regression.trial import start

# The sum of deviations from which the base branch looks lower, the slack of each run, and merges between long looks.
_CUSUM_LIMIT, _CUSUM_SLACK, _MERGES = 4.0, 0.5, 10


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
        looks_lower = _cusum([float(run[0].mean()) for run in runs])
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
            if looks_lower(float(run[0].mean())):
                is_proven, costs[-1] = _long_look(repository, tip, first, pool, day)
                if is_proven:
                    lost = 100 * float(first.rates.mean() - tip.rates.mean())
                    return {"blocked": blocked, "alarm": [1.0], "lost": [lost], "runs per merge": costs}
        return {"blocked": blocked, "alarm": [0.0], "runs per merge": costs}


def _cusum(levels: list[float]) -> Callable[[float], bool]:
    """Return what says whether a long look is due after a run with some mean."""
    usual = float(np.mean(levels))
    deviation = max(float(np.std(levels, ddof=1)) * (1 + 1 / len(levels)) ** 0.5, 1e-3)
    total, merges = 0.0, 0

    def is_due(level: float) -> bool:
        nonlocal total, merges
        total = max(0.0, total + (usual - level) / deviation - _CUSUM_SLACK)
        merges += 1
        if total <= _CUSUM_LIMIT and merges < _MERGES:
            return False
        total, merges = 0.0, 0
        return True

    return is_due


def _long_look(repository: Repository, tip: Agent, first: Agent, pool: Pool, day: Day) -> tuple[bool, float]:
    """Return whether the tip is proven to be lower than the first commit, at half the strict limits, and the cost."""
    halves = tuple(limit / 2 for limit in repository.settings.strict)
    settings = replace(repository.settings, strict=halves, calm=halves)
    trial = start(evidence_of(repository.world, first, pool[-1], pool, repository.seed()), settings, mirrored=False)
    make = maker(repository.world, {"current": tip, "control": first}, day, repository.generator)
    drive(compare_side_by_side(trial, [], 1, {}), make)
    return bool(trial.means), trial.cost.runs
