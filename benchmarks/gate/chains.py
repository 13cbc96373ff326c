"""Cells of many merges one after the other: the pool as it is built, and undone changes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from benchmarks.gate.driver import extra_runs
from benchmarks.gate.repository import Repository
from benchmarks.gate.tally import Measures
from benchmarks.gate.worlds import World, draw_agent

from agenteval.compare.regression.settings import GateSettings


@dataclass(frozen=True, kw_only=True)
class CleanChain:
    """Many merges without a change."""

    world: World = field(default_factory=World)
    merges: int = 40
    settings: GateSettings

    def replicate(self, generator: np.random.Generator) -> Measures:
        """Return false alarms and costs of pull requests and of the base branch, and how the pool fared."""
        repository = Repository.of(self.world, self.settings, generator)
        agent = draw_agent(self.world, generator)
        pool = repository.pool(agent, 5)
        measures: dict[str, list[float]] = {
            name: [] for name in ("false alarm", "extra", "base extra", "epochs", "pool")
        }
        for _ in range(self.merges):
            decision = repository.pull_request(agent, agent, pool)
            merged = repository.merge(agent, agent, pool)
            pool = merged.pool
            measures["false alarm"].append(decision.verdict == "regressed")
            measures["extra"].append(extra_runs(decision, self.world))
            measures["base extra"].append(merged.extra)
            measures["epochs"].append(merged.is_new_epoch)
            measures["pool"].append(len(pool))
        return measures


@dataclass(frozen=True, kw_only=True)
class ChangedChain:
    """A change of the mean is merged after ten runs; some merges later come a clean and a bad pull request.

    Args:
        gain: change of the mean, in points. The bad pull request undoes a gain, or falls by ten points after a loss.
        lag: merges since then, that of the change included.
        proves_epochs: whether the base branch's runs are compared with their parents.
        world: the world. It does not choose the random draws, so cells that differ only in it have the same ones.
        settings: limits of the gate.
    """

    gain: float
    lag: int
    proves_epochs: bool
    world: World = field(default_factory=World, repr=False)
    settings: GateSettings

    def replicate(self, generator: np.random.Generator) -> Measures:
        """Return whether the change began an epoch, whether the bad one was found, and the clean one's figures."""
        world = self.world
        repository = Repository.of(world, self.settings, generator)
        agent = draw_agent(world, generator)
        lower = agent.lower(abs(self.gain) / 100)
        before, after = (lower, agent) if self.gain > 0 else (agent, lower)
        pool = repository.pool(before, 10)
        found_epoch, parent = False, before
        for number in range(self.lag):
            if self.proves_epochs:
                merged = repository.merge(after, parent, pool)
                pool, found_epoch = merged.pool, found_epoch or (number == 0 and merged.is_new_epoch)
            else:
                pool = [*pool, *repository.pool(after, 1)][-self.settings.window :]
            parent = after
        clean = repository.pull_request(after, after, pool)
        bad = repository.pull_request(before if self.gain > 0 else after.lower(0.10), after, pool)
        return {
            "epoch": [float(found_epoch)],
            "false alarm": [float(clean.verdict == "regressed")],
            "extra": [extra_runs(clean, world)],
            "found": [float(bad.verdict == "regressed")],
        }


@dataclass(frozen=True, kw_only=True)
class Undone:
    """An agent that repeats its answers rose from 8 to 19 of 19 cases; the next pull request undoes it.

    Args:
        old: runs of the pool before the rise.
        new: runs of the pool after it.
        settings: limits of the gate.
    """

    old: int
    new: int
    settings: GateSettings

    def replicate(self, generator: np.random.Generator) -> Measures:
        """Return whether the pull request was blocked, and the cost."""
        world = World(cases=19)
        agent = draw_agent(world, generator)
        low = replace(agent, rates=np.array([1.0] * 8 + [0.0] * 11))
        high = replace(agent, rates=np.ones(19))
        repository = Repository.of(world, self.settings, generator)
        pool = [*repository.pool(low, self.old), *repository.pool(high, self.new)][-self.settings.window :]
        decision = repository.pull_request(low, high, pool)
        return {"found": [float(decision.verdict == "regressed")], "extra": [extra_runs(decision, world)]}
