"""Worlds to test the gate in: how often cases pass, how runs are noisy, and how days differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
#: One run: per metric, cases by iterations; NaN for a lost iteration.
Arrays = list[Array]

Mix = Literal["mixed", "flaky", "near", "all pass"]
Metrics = Literal["passed", "judge", "both"]
Noise = Literal["independent", "correlated", "sticky", "clusters", "run clusters", "declared clusters"]

# Shares of the kinds of cases of a mix, each with a fixed pass rate or the two parameters of a beta distribution.
_KINDS: dict[Mix, tuple[tuple[float, float | tuple[float, float]], ...]] = {
    "mixed": ((0.55, 0.9995), (0.20, (18, 1.2)), (0.12, (5, 2)), (0.08, (1.5, 1.5)), (0.05, (1, 15))),
    "flaky": ((0.25, 0.999), (0.35, (9, 1.5)), (0.40, (2, 2))),
    "near": ((1.0, (40, 1.5)),),
    "all pass": ((1.0, 0.9995),),
}
_LEAST_RATE = 5e-4
# A case below this rate is broken, and no day mends it.
_BROKEN = 1e-3
# Two iterations of a run are correlated by .3; these are the two parameters of the beta distribution for a mean of 1.
_SPREAD = 0.7 / 0.3
# Lost iterations: the error rate of a run is lognormal.
_ERROR_SIGMA, _MOST_ERRORS = 1.2, 0.5
# Share of the iterations of a case that have the same random number as the others of the cluster.
_CLUSTER_SHARED = 0.5


@dataclass(frozen=True, kw_only=True)
class World:
    """A suite and its surroundings.

    Args:
        mix: how often cases pass.
        metrics: pass or fail, a judge's score, or pass or fail with two judges.
        cases: number of cases.
        iterations: iterations of every case in a run.
        runs: runs in the pool.
        noise: how iterations depend on each other.
        drift: standard deviation of the shift of a day, in logits.
        walk: whether the shifts of the days add up.
        same_day: whether the confirming runs have the same day as the first run.
        case_drift: standard deviation of the shift of each case on a day, in logits.
        judge_drift: standard deviation of the shift of a judge's scores on a day.
        trend: shift per day, in logits.
        step: shift of the day of the pull request, in logits.
        errors: median share of lost iterations of a run.
        staged: whether the first run asks settled cases only once. The random draws do not depend on it, so that
            the pull requests are the same with and without it.
    """

    mix: Mix = "mixed"
    metrics: Metrics = "passed"
    cases: int = 50
    iterations: int = 3
    runs: int = 10
    noise: Noise = "independent"
    drift: float = 0.0
    walk: bool = False
    same_day: bool = True
    case_drift: float = 0.0
    judge_drift: float = 0.0
    trend: float = 0.0
    step: float = 0.0
    errors: float = 0.0
    staged: bool = field(default=False, repr=False)


@dataclass(frozen=True)
class Day:
    """What the runs of a day have in common: shifts of all cases and of each case in logits, and of judged scores."""

    shift: float = 0.0
    case_shifts: Array | None = None
    judge_shift: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Agent:
    """An agent in a suite.

    Args:
        rates: pass rate of each case.
        usual: pass rates before any change; a judge's score follows the deviation from them.
        levels: mean of a judge's score of each case.
        spreads: standard deviation of a judge's score of each case.
        cluster_of: number of the cluster of each case.
        judged_lower: how much a judge's scores fell.
    """

    rates: Array
    usual: Array
    levels: Array
    spreads: Array
    cluster_of: npt.NDArray[np.int64]
    judged_lower: float = 0.0

    def lower(self, points: float) -> Agent:
        """Return the agent with all pass rates times one factor, so that their mean falls by ``points`` (0..1)."""
        factor = max(0.0, 1 - points / float(self.rates.mean()))
        return replace(self, rates=np.clip(self.rates * factor, _LEAST_RATE, 1 - _LEAST_RATE))


def draw_agent(world: World, generator: np.random.Generator) -> Agent:
    """Return a random agent of a world."""
    kinds = _KINDS[world.mix]
    kind = generator.choice(len(kinds), world.cases, p=[share for share, _ in kinds])
    rates = np.zeros(world.cases)
    for number, (_, rate) in enumerate(kinds):
        here = kind == number
        rates[here] = generator.beta(*rate, int(here.sum())) if isinstance(rate, tuple) else rate
    rates = np.clip(rates, _LEAST_RATE, 1 - _LEAST_RATE)
    return Agent(
        rates=rates,
        usual=rates,
        levels=np.clip(0.25 + 0.68 * rates + generator.normal(0, 0.12, world.cases), 0.02, 1.0),
        spreads=np.where((rates > 0.03) & (rates < 0.97), 0.22, 0.08),
        cluster_of=generator.integers(0, max(2, world.cases // 4), world.cases),
    )


def changed(agent: Agent, change: str, generator: np.random.Generator) -> Agent:
    """Return the agent after a change.

    Args:
        agent: the agent before.
        change: ``none``; ``mean N``: the mean falls by N points; ``judge N``: a judge's scores fall by N points;
            ``one to R`` and ``three to R``: so many of the best cases pass at the rate R.
        generator: breaks ties.
    """
    if change == "none":
        return agent
    kind, *_, number = change.split()
    if kind == "mean":
        return agent.lower(float(number) / 100)
    if kind == "judge":
        return replace(agent, judged_lower=float(number) / 100)
    best_first = np.argsort(-agent.rates + generator.random(len(agent.rates)) * 1e-3)
    rates = agent.rates.copy()
    rates[best_first[: {"one": 1, "three": 3}[kind]]] = max(float(number), _LEAST_RATE)
    return replace(agent, rates=rates)


def days(world: World, generator: np.random.Generator) -> Iterator[Day]:
    """Yield the days of a world, one after the other, without its step."""
    level, number = 0.0, 0
    while True:
        shift = float(generator.normal(0, world.drift)) if world.drift else 0.0
        level = level + shift if world.walk else shift
        yield Day(
            level + world.trend * number,
            generator.normal(0, world.case_drift, world.cases) if world.case_drift else None,
            float(generator.normal(0, world.judge_drift)) if world.judge_drift else 0.0,
        )
        number += 1


def held(agent: Agent, generator: np.random.Generator) -> Agent:
    """Return the agent of one session, where each case keeps one random pass rate to the end."""
    return replace(agent, rates=np.clip(_correlated(agent.rates, generator), _LEAST_RATE, 1 - _LEAST_RATE))


def make_run(agent: Agent, world: World, iterations: int, day: Day, generator: np.random.Generator) -> Arrays:
    """Return one run of all cases."""
    rates = _on_day(agent.rates, day)
    if world.noise == "correlated":
        rates = _correlated(rates, generator)
    shape = (len(rates), iterations)
    chance = generator.random(shape)
    if "clusters" in world.noise:
        each = 1 if world.noise == "run clusters" else iterations
        shared = generator.random((int(agent.cluster_of.max()) + 1, each))[agent.cluster_of]
        chance = np.where(generator.random(shape) < _CLUSTER_SHARED, shared, chance)
    passed = (chance < rates[:, None]).astype(np.float64)
    made = [] if world.metrics == "judge" else [passed]
    judges = {"passed": 0, "judge": 1, "both": 2}[world.metrics]
    made += [_judged(agent, passed, day, generator) for _ in range(judges)]
    if world.errors:
        made = lose(made, generator.random(shape) < error_share(world.errors, generator))
    return made


def error_share(median: float, generator: np.random.Generator) -> float:
    """Return the share of lost iterations of one run."""
    return min(_MOST_ERRORS, median * float(np.exp(generator.normal(0, _ERROR_SIGMA))))


def lose(run: Arrays, lost: npt.NDArray[np.bool_]) -> Arrays:
    """Return a run without some iterations."""
    return [np.where(lost, np.nan, scores) for scores in run]


def _on_day(rates: Array, day: Day) -> Array:
    if not day.shift and day.case_shifts is None:
        return rates
    odds = rates / (1 - rates) * np.exp(day.shift + (0.0 if day.case_shifts is None else day.case_shifts))
    return np.where(rates < _BROKEN, rates, odds / (1 + odds))


def _correlated(rates: Array, generator: np.random.Generator) -> Array:
    drawn = generator.beta(np.maximum(rates * _SPREAD, 1e-3), np.maximum((1 - rates) * _SPREAD, 1e-3))
    return np.where((rates > _BROKEN) & (rates < 1 - _BROKEN), drawn, rates)


def _judged(agent: Agent, passed: Array, day: Day, generator: np.random.Generator) -> Array:
    """Return a judge's scores: they follow the result, vary, and are often 0, 0.5 or 1 exactly."""
    noise = generator.normal(0, 1, passed.shape) * agent.spreads[:, None]
    scores = agent.levels[:, None] + 0.25 * (passed - agent.usual[:, None]) + day.judge_shift + noise
    scores = np.clip(scores, 0, 1)
    for usual in (0.0, 0.5, 1.0):
        scores = np.where((abs(scores - usual) < 0.13) & (generator.random(passed.shape) < 0.6), usual, scores)
    return np.asarray(np.round(np.clip(scores - agent.judged_lower, 0, 1), 2), dtype=np.float64)
