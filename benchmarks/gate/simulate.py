"""Simulates one cell of the benchmark: a world, a change and a policy, with agenteval's gate."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from benchmarks.gate.worlds import Change, Noise, NoiseKind, Passes, Rates, World, changed, cluster_of, pass_rates

from agenteval.compare.policy import Confirm
from agenteval.compare.regression.decide import decide
from agenteval.compare.regression.model import Answer, Decision, Evidence, GatingMetric, Request, Scores, Unavailable
from agenteval.compare.regression.settings import GateSettings

_METRIC = "passed"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One simulated design.

    Args:
        world: how often cases pass.
        cases: size of the suite.
        iterations: iterations of every case in a run.
        runs: number of baseline runs.
        change: effect of the pull request.
        noise: noise of the runs.
        confirm: policy of the gate.
    """

    world: World
    cases: int
    iterations: int = 3
    runs: int = 5
    change: Change = "none"
    noise: NoiseKind = "independent"
    confirm: Confirm = "rerun"

    @property
    def seed(self) -> int:
        """The seed, which depends only on the cell, so that every cell can be simulated alone."""
        return zlib.crc32(repr(self).encode())


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Counts over replications, and the sum of the extra iterations in units of one run of the suite."""

    replications: int = 0
    regressed: int = 0
    covered: int = 0
    compared: int = 0
    extra: float = 0.0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            replications=self.replications + other.replications,
            regressed=self.regressed + other.regressed,
            covered=self.covered + other.covered,
            compared=self.compared + other.compared,
            extra=self.extra + other.extra,
        )

    @property
    def regressed_rate(self) -> float:
        """Share of replications that were blocked."""
        return self.regressed / self.replications

    @property
    def coverage(self) -> float:
        """Share of the reported intervals that contain the true difference."""
        return self.covered / self.compared if self.compared else 1.0

    @property
    def extra_runs(self) -> float:
        """Mean of the extra iterations, in units of one run of the suite."""
        return self.extra / self.replications


def simulate(cell: Cell, first: int, replications: int) -> Tally:
    """Simulate the replications ``first``, ``first + 1``, ... of a cell; each has a separate seed."""
    numbers = range(first, first + replications)
    return sum((_replicate(cell, np.random.default_rng([cell.seed, n])) for n in numbers), Tally())


def _replicate(cell: Cell, generator: np.random.Generator) -> Tally:
    before = pass_rates(cell.world, cell.cases, generator)
    after = changed(before, cell.change, generator)
    noise = Noise(cell.noise, generator)
    pool = [noise.run(before, cell.iterations, noise.shift()) for _ in range(cell.runs)]
    current = noise.run(after, cell.iterations, noise.shift())
    evidence = _evidence(cell, current, pool, int(generator.integers(2**63)))
    decision = _decided(evidence, _Agents(before, after, noise, cell.confirm))
    (metric,) = decision.metrics
    low, high = metric.interval or (0.0, 0.0)
    has_interval = metric.interval is not None
    return Tally(
        replications=1,
        regressed=int(decision.verdict == "regressed"),
        covered=int(has_interval and low - 1e-12 <= float((after - before).mean()) <= high + 1e-12),
        compared=int(has_interval),
        extra=decision.cost.calls / (cell.cases * cell.iterations),
    )


def _evidence(cell: Cell, current: Passes, pool: Sequence[Passes], seed: int) -> Evidence:
    names = [_name(number) for number in range(cell.cases)]
    clusters = {name: cluster for number, name in enumerate(names) if (cluster := cluster_of(number, cell.noise))}
    return Evidence(
        metrics=(GatingMetric(id=_METRIC, thresholds=dict.fromkeys(names, 0.5)),),
        first=_named(current),
        pool=tuple(_named(run) for run in pool),
        clusters=clusters,
        iterations=dict.fromkeys(names, cell.iterations),
        seed=seed,
    )


@dataclass(frozen=True)
class _Agents:
    """Pass rates of the base commit's agent and of the pull request's agent."""

    before: Rates
    after: Rates
    noise: Noise
    confirm: Confirm

    def answer(self, request: Request) -> Answer | Unavailable:
        """Make the runs of a request: both sides have the same drift."""
        if self.confirm != "against-base" and "control" in request.sides:
            return Unavailable("control", "not simulated")
        shift = self.noise.shift()
        rates = {"current": self.after, "control": self.before}
        iterations = max(request.iterations.values())
        runs = {side: _named(self.noise.run(rates[side], iterations, shift)) for side in request.sides}
        return {side: {case_id: run[case_id] for case_id in request.iterations} for side, run in runs.items()}


def _decided(evidence: Evidence, agents: _Agents) -> Decision:
    asking = decide(evidence, GateSettings())
    try:
        request = next(asking)
        while True:
            request = asking.send(agents.answer(request))
    except StopIteration as ended:
        decision: Decision = ended.value
        return decision


def _name(number: int) -> str:
    return f"{number:05d}"


def _named(passes: Passes) -> Scores:
    """Return a run as scores by case and metric."""
    return {_name(number): {_METRIC: scores} for number, scores in enumerate(_scores(passes))}


def _scores(passes: Passes) -> list[tuple[float, ...]]:
    """Return every row as a tuple of scores; equal rows share one tuple."""
    rows = _rows(passes.shape[1])
    codes = passes @ (1 << np.arange(passes.shape[1]))
    return [rows[code] for code in codes.tolist()]


@cache
def _rows(iterations: int) -> list[tuple[float, ...]]:
    bits = itertools.product((0.0, 1.0), repeat=iterations)
    return [tuple(reversed(row)) for row in bits]
