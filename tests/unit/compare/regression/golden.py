"""The inputs of the golden results in ``tests/data/gate``, made from a number each.

All random numbers come from ``numpy.random.default_rng((number, …))``: uniform doubles, compared with a rate. The
digest in the golden file shows whether another version of NumPy draws other numbers.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from tests.unit.compare.regression.worlds import Agent, Array, Arrays

_CURRENT, _CONTROL, _SHAPE, _RUNS = 1, 2, 3, 4


@dataclass(frozen=True)
class World:
    """A suite, its agents and its earlier runs."""

    number: int
    first: Arrays
    pool: list[Arrays]
    thresholds: list[float | None]
    units: list[int] | None
    rates: Array
    changed: Array

    def agent(self, *, is_control: bool) -> Agent:
        """Return an agent whose n-th answer depends only on the world, the side and n."""
        calls = 0
        rates, side = (self.rates, _CONTROL) if is_control else (self.changed, _CURRENT)

        def answer(rows: list[int], count: int) -> Arrays:
            nonlocal calls
            calls += 1
            generator = np.random.default_rng((self.number, side, calls))
            return draw(generator, rates, count, len(self.thresholds), rows)

        return answer


def draw(
    generator: np.random.Generator, rates: Array, count: int, metrics: int, rows: list[int] | None = None
) -> Arrays:
    """Return one run: a metric of 0 and 1, and others in tenths that follow it."""
    uniform = generator.random((len(rates), count))
    passed = (uniform < rates[:, None]).astype(np.float64)
    run: Arrays = [passed]
    run += [
        np.asarray(
            np.round(np.clip(0.3 + 0.5 * passed + 0.3 * (generator.random(passed.shape) - 0.5), 0, 1), 1),
            dtype=np.float64,
        )
        for _ in range(metrics - 1)
    ]
    return run if rows is None else [values[rows] for values in run]


def world(number: int) -> World:
    """Return one of endless suites of 3 to 24 cases; every third one is unchanged, every fifth one never varies."""
    shape = np.random.default_rng((number, _SHAPE))
    cases, iterations = int(shape.integers(3, 25)), int(shape.integers(1, 4))
    pool_runs, metrics = int(shape.integers(0, 7)), int(shape.integers(1, 3))
    rates = np.clip(shape.beta(2.0, 0.6, cases), 0.02, 0.98)
    rates[shape.random(cases) < 0.5] = 1.0
    if number % 5 == 0:
        rates = np.round(rates)
    changed = rates.copy()
    kind = number % 3
    if kind == 1:
        changed = rates * shape.uniform(0.3, 0.95)
    if kind == 2:
        changed[: int(shape.integers(1, 4))] = shape.choice([0.0, 0.5])
    if number % 5 == 0:
        changed = np.round(changed)
    runs = np.random.default_rng((number, _RUNS))
    pool = [draw(runs, rates, iterations, metrics) for _ in range(pool_runs)]
    first = draw(runs, changed, iterations, metrics)
    if number % 7 == 0 and number % 5:
        for run in pool:
            lost = runs.random((cases, iterations)) < 0.03
            for values in run:
                values[lost] = np.nan
    units = shape.integers(0, max(2, cases // 2), cases).tolist() if number % 4 == 0 else None
    if metrics == 2 and number % 5 == 0:
        # The second metric of these suites must not vary either.
        for run in (*pool, first):
            run[1] = 0.2 + 0.6 * run[0]
    return World(number, first, pool, [0.5] + [None] * (metrics - 1), units, rates, changed)


def digest(made: World) -> str:
    """Return a short hash of a world's scores."""
    content = b"".join(
        np.nan_to_num(values, nan=-1.0).tobytes() for run in (made.first, *made.pool) for values in run
    )
    return hashlib.sha256(content).hexdigest()[:8]
