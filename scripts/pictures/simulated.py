"""Simulated pull requests: a suite of 50 cases, three iterations, ten earlier runs, and the gate's decision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from benchmarks.gate.driver import drive, evidence_of, maker, scores_of
from benchmarks.gate.worlds import Day, World, changed, draw_agent, make_run

from agenteval.compare.regression.decide import decide
from agenteval.compare.regression.interval import Inversion
from agenteval.compare.regression.model import Decision, Evidence, Scores, Side, Unavailable
from agenteval.compare.regression.runs import Run, layout_of
from agenteval.compare.regression.settings import GateSettings
from agenteval.compare.regression.trial import HEAD_TO_HEAD, Asking

# Fewer labelings than the gate draws, and runs of the usual length, as in the simulation of the gate.
SETTINGS = GateSettings(draws=1999, head_to_head_calls=0)
WORLD = World()


@dataclass(frozen=True)
class PullRequest:
    """One simulated pull request.

    Attributes:
        evidence: the first run and the earlier runs.
        decision: what the gate decided.
        sides: the whole runs that it asked for, in their order.
    """

    evidence: Evidence
    decision: Decision
    sides: dict[Side, list[Scores]]

    def mean(self, scores: Scores) -> float:
        """Return the mean of a run in points."""
        return 100 * float(np.mean([score for metrics in scores.values() for score in metrics["m0"]]))

    def intervals(self) -> list[tuple[float, float, float]]:
        """Return the ends of the interval of each test side by side, and the difference between them, in points."""
        layout = layout_of(self.evidence, mirrored=False)
        own, other = ([layout.read(scores) for scores in self.sides[side]] for side in ("current", "control"))
        return [
            _interval(own[: look.runs], other[: look.runs], self.evidence, look.limit, 100 * look.difference)
            for look in self.decision.looks
        ]


def _interval(
    own: list[Run], other: list[Run], evidence: Evidence, limit: float, difference: float
) -> tuple[float, float, float]:
    units = layout_of(evidence, mirrored=False).unit_of
    seed = (evidence.seed % 2**64, HEAD_TO_HEAD + len(own) - 1)
    low, high = Inversion(own, other, units, seed, SETTINGS).interval(0, limit)
    return 100 * low, difference, 100 * high


def pull_request(seed: int, change: str) -> PullRequest:
    """Return a pull request.

    Args:
        seed: of everything that is random.
        change: the change, as in `benchmarks.gate.worlds.changed`.
    """
    generator = np.random.default_rng(seed)
    before = draw_agent(WORLD, generator)
    after = changed(before, change, generator)
    agents = [*[before] * WORLD.runs, after]
    *pool, first = (scores_of(make_run(agent, WORLD, WORLD.iterations, Day(), generator)) for agent in agents)
    evidence = evidence_of(WORLD, before, first, pool, seed)
    make = maker(WORLD, {"current": after, "control": before}, Day(), generator)
    parts: dict[Side, list[Scores]] = {"current": [], "control": []}
    decision = drive(_noted(decide(evidence, SETTINGS), parts), make)
    return PullRequest(evidence, decision, {side: list(_whole_runs(made)) for side, made in parts.items()})


def _noted(gate: Asking[Decision], parts: dict[Side, list[Scores]]) -> Asking[Decision]:
    """Pass requests and answers on, and note the scores of whole runs and of parts of them."""
    try:
        request = next(gate)
        while True:
            answer = yield request
            if request.is_whole and not isinstance(answer, Unavailable):
                for side, scores in answer.items():
                    parts[side].append(scores)
            request = gate.send(answer)
    except StopIteration as stop:
        decision: Decision = stop.value
        return decision


def _whole_runs(parts: list[Scores]) -> Iterator[Scores]:
    """Yield runs of the suite, joined from passes of one iteration."""
    run: dict[str, tuple[float | None, ...]] = {}
    for scores in parts:
        run = {case: (*run.get(case, ()), *metrics["m0"]) for case, metrics in scores.items()}
        if all(len(row) == WORLD.iterations for row in run.values()):
            yield {case: {"m0": row} for case, row in run.items()}
            run = {}
