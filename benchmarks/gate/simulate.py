"""Simulates one cell of the benchmark: a world, a change and a policy, with agenteval's gate."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from benchmarks.gate.worlds import Change, Noise, NoiseKind, Passes, Rates, World, changed, cluster_of, pass_rates

from agenteval.compare.statistics.decision import FirstStage, final_stage, first_stage
from agenteval.compare.statistics.model import CaseRuns, MetricRuns, Scores
from agenteval.compare.statistics.parameters import Confirm, GateParameters


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
        return self.covered / self.compared

    @property
    def extra_runs(self) -> float:
        """Mean of the extra iterations, in units of one run of the suite."""
        return self.extra / self.replications


def simulate(cell: Cell, first: int, replications: int) -> Tally:
    """Simulate the replications ``first``, ``first + 1``, ... of a cell; each has a separate seed."""
    numbers = range(first, first + replications)
    return sum((_replicate(cell, np.random.default_rng([cell.seed, n])) for n in numbers), Tally())


def _replicate(cell: Cell, generator: np.random.Generator) -> Tally:
    parameters = GateParameters(confirm=cell.confirm)
    before = pass_rates(cell.world, cell.cases, generator)
    after = changed(before, cell.change, generator)
    noise = Noise(cell.noise, generator)
    pool = [noise.run(before, cell.iterations, noise.shift()) for _ in range(cell.runs)]
    current = noise.run(after, cell.iterations, noise.shift())
    metric = _metric(cell, current, pool, int(generator.integers(2**63)))
    first = first_stage([metric], parameters)
    confirmed = _confirmed(metric, first, _Agents(before, after, cell.iterations, noise))
    decision = final_stage(first, [confirmed], parameters)
    estimate = decision.metrics[0].evidence.estimate
    if estimate is None:
        raise AssertionError("every case has scores on both sides")
    low, high = estimate.interval
    return Tally(
        replications=1,
        regressed=int(decision.verdict == "regressed"),
        covered=int(low - 1e-12 <= float((after - before).mean()) <= high + 1e-12),
        compared=1,
        extra=_extra(cell, first),
    )


def _metric(cell: Cell, current: Passes, pool: Sequence[Passes], seed: int) -> MetricRuns:
    rows = zip(_scores(current), zip(*(_scores(run) for run in pool), strict=True), strict=True)
    cases = tuple(
        CaseRuns(case_id=f"{number:05d}", current=ours, baseline=theirs, cluster=cluster_of(number, cell.noise))
        for number, (ours, theirs) in enumerate(rows)
    )
    return MetricRuns(metric="passed", cases=cases, seed=seed)


@dataclass(frozen=True)
class _Agents:
    """Pass rates of the base commit's agent and of the pull request's agent."""

    before: Rates
    after: Rates
    iterations: int
    noise: Noise

    def run_both(self, iterations: int) -> tuple[list[Scores], list[Scores]]:
        """Run the pull request's agent beside the other one; both have the same drift."""
        shift = self.noise.shift()
        ours, theirs = (self.noise.run(rates, iterations, shift) for rates in (self.after, self.before))
        return _scores(ours), _scores(theirs)


def _confirmed(metric: MetricRuns, first: FirstStage, agents: _Agents) -> MetricRuns:
    """Return the metric with the confirmation runs that the first stage asked for."""
    none: list[Scores] = [()] * len(metric.cases)
    second, control, reruns, control_reruns = none, none, none, none
    if first.second_run:
        second, control = agents.run_both(agents.iterations)
    if first.reruns:
        reruns, control_reruns = agents.run_both(max(first.reruns.values()))
    cases = (
        replace(
            case,
            second=second[number],
            control=control[number] if first.beside_base else (),
            reruns=reruns[number] if case.case_id in first.reruns else (),
            control_reruns=control_reruns[number] if first.beside_base and case.case_id in first.reruns else (),
        )
        for number, case in enumerate(metric.cases)
    )
    return replace(metric, cases=tuple(cases))


def _extra(cell: Cell, first: FirstStage) -> float:
    sides = 2 if first.beside_base else 1
    suite = cell.cases * cell.iterations
    return sides * (first.second_run * suite + sum(first.reruns.values())) / suite


def _scores(passes: Passes) -> list[Scores]:
    """Return every row as a tuple of scores; equal rows share one tuple."""
    rows = _rows(passes.shape[1])
    codes = passes @ (1 << np.arange(passes.shape[1]))
    return [rows[code] for code in codes.tolist()]


@cache
def _rows(iterations: int) -> list[Scores]:
    bits = itertools.product((0.0, 1.0), repeat=iterations)
    return [tuple(reversed(row)) for row in bits]
