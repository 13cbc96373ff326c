"""Runs of made-up agents for the gate, and a driver that answers its requests."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from agenteval.compare.driving import driven
from agenteval.compare.regression.model import (
    Answer,
    Decision,
    Evidence,
    GatingMetric,
    Request,
    Scores,
    Side,
    Unavailable,
)

Array = npt.NDArray[np.float64]
#: One array per metric: cases by iterations, NaN for a lost iteration.
Arrays = list[Array]
Agent = Callable[[list[int], int], Arrays]


def case_id(row: int) -> str:
    return f"case-{row:04}"


def scores_of(run: Arrays, rows: list[int] | None = None) -> Scores:
    """Return arrays as the scores of a run, with the rows as cases ``rows``."""
    names = [case_id(row) for row in (range(len(run[0])) if rows is None else rows)]
    return {
        name: {
            f"m{metric}": tuple(None if np.isnan(score) else float(score) for score in values[number])
            for metric, values in enumerate(run)
        }
        for number, name in enumerate(names)
    }


def evidence_of(
    first: Arrays,
    pool: list[Arrays],
    thresholds: list[float | None],
    *,
    seed: int = 0,
    units: list[int] | None = None,
    repeats: bool = False,
) -> Evidence:
    cases, iterations = len(first[0]), int(first[0].shape[1])
    names = [case_id(row) for row in range(cases)]
    return Evidence(
        metrics=tuple(
            GatingMetric(id=f"m{number}", thresholds={} if limit is None else dict.fromkeys(names, limit))
            for number, limit in enumerate(thresholds)
        ),
        first=scores_of(first),
        pool=tuple(scores_of(run) for run in pool),
        clusters={} if units is None else {name: f"u{unit:03}" for name, unit in zip(names, units, strict=True)},
        repeats=repeats,
        iterations=dict.fromkeys(names, iterations),
        seed=seed,
    )


def constant(values: list[float], iterations: int = 3) -> Arrays:
    return [np.repeat(np.array(values, dtype=np.float64)[:, None], iterations, axis=1)]


@dataclass
class Driver:
    """Answers requests with the agents of both sides, and notes them."""

    agents: Mapping[Side, Agent]
    refused: Callable[[Request], Unavailable | None] = lambda request: None
    requests: list[Request] = field(default_factory=list)

    def run(self, gate: Generator[Request, Answer | Unavailable, Decision]) -> Decision:
        return driven(gate, self._answered)

    def _answered(self, request: Request) -> Answer | Unavailable:
        self.requests.append(request)
        return self.refused(request) or {side: self.answer(side, request) for side in request.sides}

    def answer(self, side: Side, request: Request) -> Scores:
        rows = [int(name.removeprefix("case-")) for name in request.iterations]
        counts = set(request.iterations.values())
        assert len(counts) == 1
        return scores_of(self.agents[side](rows, counts.pop()), rows)


def fixed(run: Arrays) -> Agent:
    """Return an agent that always gets the first score of a run."""
    return lambda rows, count: [np.repeat(values[rows, :1], count, axis=1) for values in run]
