"""Scores turns with their metrics: skips inapplicable metrics, retries, limits time, applies thresholds."""

from __future__ import annotations

import asyncio
import inspect
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from agenteval.core.errors import AgentEvalError, ConfigError, Problem
from agenteval.core.llm.errors import BudgetSpentError
from agenteval.core.runtime import in_thread
from agenteval.metrics.base import (
    CaseMetric,
    Metric,
    NotApplicableError,
    Observation,
    Outcome,
    outcome_of,
    requirements,
)
from agenteval.metrics.registry import build
from agenteval.metrics.resources.resources import Resources
from agenteval.results.model import Score
from agenteval.suite.model import MetricConfig
from agenteval.suite.response_path import text_at_path

# Rounding may leave a score this far outside 0..1; beyond it is an error.
_ROUNDING = 1e-9
# Metrics may need noticeable time for longer answers (characters).
_LONG = 20_000
# Field → its name in messages, if it is not a key of suites.
_MEANT = {"context": "files to take context from", "sources": "files and no retrieval_context"}


@dataclass
class MetricCatalog:
    """The metrics of a run, each built once."""

    resources: Resources
    _built: dict[int, tuple[MetricConfig, Any]] = field(default_factory=dict)

    def get(self, config: MetricConfig) -> Any:
        """Return the metric of a configuration.

        Raises:
            ConfigError: something that the metric needs is missing on this machine.
        """
        # Keyed by identity: suite-wide configurations are shared by all cases, and the stored
        # configuration keeps the identity from being given to another one.
        found = self._built.get(id(config))
        if found is None:
            try:
                found = self._built[id(config)] = (config, build(config, self.resources))
            except ConfigError as error:
                raise ConfigError([_placed(problem, config) for problem in error.problems]) from None
        return found[1]


def _placed(problem: Problem, config: MetricConfig) -> Problem:
    """Return the problem with the place of its metric."""
    return problem if problem.file else replace(problem, file=config.where.file, line=config.where.line)


async def score_turn(
    configs: Iterable[MetricConfig], observation: Observation, catalog: MetricCatalog
) -> list[Score]:
    """Score one turn with every metric, in suite order; judges run concurrently."""
    metrics: list[tuple[MetricConfig, Metric]] = [(config, catalog.get(config)) for config in configs]
    scores = [_score(config, metric, observation) for config, metric in metrics]
    if any(_asks(metric) for _, metric in metrics):
        return await asyncio.gather(*scores)
    return [await score for score in scores]


def _asks(metric: Metric) -> bool:
    """Return whether a metric waits for a model or a process."""
    return _is_coroutine_function(type(metric).measure)


@cache
def _is_coroutine_function(function: Callable[..., object]) -> bool:
    # Cached, as every score needs it.
    return inspect.iscoroutinefunction(function)


async def score_case(
    config: MetricConfig, observations: Sequence[Observation], catalog: MetricCatalog
) -> list[Score]:
    """Score all iterations of a case together; one score for each, in order."""
    metric: CaseMetric = catalog.get(config)
    started = time.perf_counter()
    try:
        outcomes = metric.measure_all(observations)
        found = list(map(outcome_of, await outcomes if inspect.isawaitable(outcomes) else outcomes))
    except BudgetSpentError as error:
        return [_skipped(config, str(error))] * len(observations)
    except AgentEvalError as error:
        return [_error(config, str(error), started)] * len(observations)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - one broken metric must not end the run
        return [_error(config, f"{type(error).__name__}: {error}", started)] * len(observations)
    return [_scored(config, outcome, started) for outcome in found]


async def _score(config: MetricConfig, metric: Metric, observation: Observation) -> Score:
    missing = sorted(name for name in requirements(metric) if not _has(observation, name))
    if missing:
        return _not_applicable(config, missing)
    started = time.perf_counter()
    try:
        outcome = await _measure(config, metric, observation)
    except (BudgetSpentError, NotApplicableError) as error:
        return _skipped(config, str(error))
    except AgentEvalError as error:
        return _error(config, str(error), started)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - one broken metric must not end the run
        return _error(config, f"{type(error).__name__}: {error}", started)
    return _scored(config, outcome, started)


def _scored(config: MetricConfig, outcome: Outcome | None, started: float) -> Score:
    if outcome is None:
        return _skipped(config, "the metric does not apply")
    problem = _range_problem(outcome.score)
    if problem:
        return _error(config, problem, started)
    score = min(1.0, max(0.0, outcome.score))
    return Score(
        id=config.id,
        kind=config.kind,
        score=score,
        threshold=config.threshold,
        passed=_verdict(config, outcome, score),
        status="scored",
        reason=outcome.reason,
        model=outcome.model,
        duration_ms=_elapsed_ms(started),
        cost_usd=outcome.cost_usd,
        details=dict(outcome.details) if outcome.details else None,
    )


def _has(observation: Observation, name: str) -> bool:
    value = getattr(observation, name)
    return value is not None and value != ()


def _not_applicable(config: MetricConfig, missing: list[str]) -> Score:
    what = " and ".join(_MEANT.get(name, name) for name in missing)
    # The loader checked ground truths; only a single turn may lack one.
    checked = missing == ["ground_truth"] and config.kind == "standard"
    if config.requested_by in {"case", "turn"} and not checked:
        # The case asks for the metric, so skipping it would hide a mistake.
        return _error(config, f"this {config.requested_by} asks for {config.id} but has no {what}", None)
    return _skipped(config, f"the case has no {what}")


def _skipped(config: MetricConfig, reason: str) -> Score:
    return Score(
        id=config.id,
        kind=config.kind,
        score=None,
        threshold=config.threshold,
        passed=None,
        status="skipped",
        reason=reason,
    )


async def _measure(config: MetricConfig, metric: Metric, observation: Observation) -> Outcome | None:
    if config.response_path is not None:
        try:
            observation = replace(observation, response=text_at_path(observation.response, config.response_path))
        except ValueError as error:
            return Outcome(0.0, passed=False, decided=True, reason=str(error))
    for attempt in range(config.retries + 1):
        try:
            return await _attempt(config, metric, observation)
        except Exception:
            if attempt == config.retries:
                raise
    raise AssertionError("the last attempt returns or raises")


async def _attempt(config: MetricConfig, metric: Metric, observation: Observation) -> Outcome | None:
    limit = asyncio.timeout(config.timeout_s)
    try:
        async with limit:
            if config.metric is not None and not _asks(metric):
                # The code of a caller may block: in a thread it has a time limit and ends with the run.
                result = await in_thread(lambda: metric.measure(observation))
            elif len(observation.response) > _LONG and not _asks(metric):
                # In a thread, so that running agents do not wait for it and time out.
                result = await asyncio.to_thread(metric.measure, observation)
            else:
                result = metric.measure(observation)
            return outcome_of(await result if inspect.isawaitable(result) else result)
    except TimeoutError:
        if not limit.expired():
            raise
        raise AgentEvalError(f"no result within {config.timeout_s:g} s") from None


def _verdict(config: MetricConfig, outcome: Outcome, score: float) -> bool | None:
    if not config.gating:
        return None
    if config.threshold is None or outcome.decided:
        return outcome.passed
    return score >= config.threshold


def _range_problem(score: float) -> str | None:
    if math.isnan(score) or math.isinf(score):
        return f"the score is {score}, not a number from 0 to 1"
    if not -_ROUNDING <= score <= 1 + _ROUNDING:
        return f"the score {score:g} is outside 0..1"
    return None


def _error(config: MetricConfig, message: str, started: float | None) -> Score:
    return Score(
        id=config.id,
        kind=config.kind,
        score=None,
        threshold=config.threshold,
        passed=None,
        status="error",
        error=message,
        duration_ms=None if started is None else _elapsed_ms(started),
    )


def _elapsed_ms(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)
