"""Gives simulated runs to the gate: evidence, answers to its requests, and what a decision cost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from functools import cache
from typing import TypeVar

import numpy as np
from benchmarks.gate.worlds import Agent, Arrays, Day, World, make_run

from agenteval.compare.driving import driven
from agenteval.compare.regression.decide import decide
from agenteval.compare.regression.model import (
    Answer,
    Burden,
    Decision,
    Evidence,
    GatingMetric,
    Request,
    Scores,
    Side,
    Unavailable,
)
from agenteval.compare.regression.settings import GateSettings
from agenteval.compare.regression.settled import settled_cases

T = TypeVar("T")
#: Makes a run of the whole suite: side, number of iterations.
Make = Callable[[Side, int], Arrays]
_THRESHOLD = 0.5
_JUDGE_STEP = 0.01


@cache
def case_ids(cases: int) -> tuple[str, ...]:
    """Return the ids of the cases of a suite, in the order of their rows."""
    return tuple(f"{row:05}" for row in range(cases))


def scores_of(run: Arrays) -> Scores:
    """Return a run as scores of the metrics ``m0``, ``m1`` …"""
    columns = [
        [tuple(None if score != score else score for score in row) for row in scores.tolist()]  # noqa: PLR0124 - NaN
        for scores in run
    ]
    names = [f"m{number}" for number in range(len(run))]
    return {
        case: dict(zip(names, rows, strict=True))
        for case, rows in zip(case_ids(len(run[0])), zip(*columns, strict=True), strict=True)
    }


def evidence_of(world: World, agent: Agent, first: Scores, pool: Sequence[Scores], seed: int) -> Evidence:
    """Return what the gate decides on; clusters are given only if the world declares them.

    A staged first run has the first iteration of the settled cases only.
    """
    names = case_ids(world.cases)
    steps = {"passed": [1.0], "judge": [_JUDGE_STEP], "both": [1.0, _JUDGE_STEP, _JUDGE_STEP]}[world.metrics]
    clusters = {}
    if world.noise == "declared clusters":
        clusters = {name: str(number) for name, number in zip(names, agent.cluster_of.tolist(), strict=True)}
    thresholds = dict.fromkeys(names, _THRESHOLD)
    asked = _asked_once(first, settled_cases(pool)) if world.staged else first
    return Evidence(
        metrics=tuple(
            GatingMetric(id=f"m{number}", thresholds=thresholds, step=step) for number, step in enumerate(steps)
        ),
        first=asked,
        is_staged=asked != first,
        pool=tuple(pool),
        clusters=clusters,
        iterations=dict.fromkeys(names, world.iterations),
        seed=seed,
    )


def _asked_once(first: Scores, settled: Collection[str]) -> Scores:
    return {
        case: {metric: scores[:1] if case in settled else scores for metric, scores in metrics.items()}
        for case, metrics in first.items()
    }


def maker(world: World, sides: dict[Side, Agent], day: Day, generator: np.random.Generator) -> Make:
    """Return what makes the runs of two agents on one day."""
    return lambda side, iterations: make_run(sides[side], world, iterations, day, generator)


def drive(gate: Generator[Request, Answer | Unavailable, T], make: Make) -> T:
    """Answer all requests of a part of the gate, and return its result."""
    return driven(gate, lambda request: _answer(request, make))


def _answer(request: Request, make: Make) -> Answer:
    most = max(request.iterations.values())
    answer: dict[Side, Scores] = {}
    for side in request.sides:
        made = scores_of(make(side, most))
        answer[side] = {
            case: {metric: row[:count] for metric, row in made[case].items()}
            for case, count in request.iterations.items()
        }
    return answer


def decide_one(evidence: Evidence, settings: GateSettings, make: Make, burden: Burden | None = None) -> Decision:
    """Return the gate's decision about one pull request."""
    return drive(decide(evidence, settings, burden), make)


def first_calls(evidence: Evidence, world: World) -> float:
    """Return the iterations of the first run, in runs of the suite."""
    asked = sum(max(map(len, metrics.values())) for metrics in evidence.first.values())
    return asked / (world.cases * world.iterations)


def extra_runs(decision: Decision, world: World) -> float:
    """Return all further iterations of a decision, both sides, in runs of the suite."""
    return decision.cost.calls / (world.cases * world.iterations)
