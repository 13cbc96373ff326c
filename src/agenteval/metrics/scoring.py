"""Scores turns with their metrics: skips inapplicable metrics, retries, limits time, applies thresholds."""

from __future__ import annotations

import asyncio
import inspect
import math
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import cache
from typing import Any, NoReturn

from agenteval.core.errors import AgentEvalError, ConfigError, InfrastructureError, Kind, Problem
from agenteval.core.escape import display_url
from agenteval.core.llm.gateway import Gateway
from agenteval.core.llm.models import MissingKeyError, ModelSpec, NotAskedError, endpoint
from agenteval.core.records import dataclass, field, replace
from agenteval.core.runtime import contained, in_thread
from agenteval.metrics.base import (
    CaseMetric,
    Metric,
    NotApplicableError,
    Observation,
    Outcome,
    checked_outcome,
    outcome_list,
    outcome_of,
    requirements,
)
from agenteval.metrics.registry import build
from agenteval.metrics.resources import Resources
from agenteval.metrics.text import PatternGivenUpError, PatternTimeouts
from agenteval.results.case import NotAsked, Score
from agenteval.suite.forms import text_at_path
from agenteval.suite.model import MetricConfig

# Rounding can move a score this far outside of 0 to 1; a larger distance is an error.
_ROUNDING = 1e-9
# For longer answers (characters), metrics may take noticeable time.
_LONG = 20_000
# Field → its name in messages, if it is not a key of suites.
_MEANT = {"context": "files to take context from", "sources": "files and no retrieval_context"}


@dataclass
class MetricCatalog:
    """The metrics of a run, each built once."""

    resources: Resources
    timeouts: PatternTimeouts = field(default_factory=PatternTimeouts)
    #: Why the model of a metric cannot be asked, by the identity of the metric's configuration.
    without_key: dict[int, list[Problem]] = field(default_factory=dict)
    _built: dict[int, tuple[MetricConfig, Any]] = field(default_factory=dict)

    def get(self, config: MetricConfig) -> Any:
        """Return the metric of a configuration."""
        # The key is the identity of the configuration, which all cases of a suite share. The stored reference to the
        # configuration prevents reuse of the identity.
        found = self._built.get(id(config))
        if found is None:
            try:
                found = self._built[id(config)] = (config, build(config, self.resources))
            except ConfigError as error:
                problems = [_placed(problem, config) for problem in error.problems]
                if not isinstance(error, MissingKeyError):
                    raise ConfigError(problems) from None
                # The metrics that need no model still decide.
                self.without_key[id(config)] = problems
                found = self._built[id(config)] = (config, _WithoutKey(problems[0].message))
        return found[1]

    @property
    def built(self) -> Iterable[tuple[MetricConfig, Any]]:
        """The metrics that are built, with their configurations."""
        return self._built.values()


class _WithoutKey:
    """In place of a metric whose model has no key: each of its scores reports that."""

    requires: frozenset[str] = frozenset()

    def __init__(self, why: str) -> None:
        self._why = why

    def measure(self, _: object) -> NoReturn:
        raise NotAskedError(self._why, "key", self._why.partition(", or ")[0])

    measure_all = measure


def built_metrics(catalogs: Iterable[MetricCatalog]) -> list[MetricConfig]:
    """Return the configurations of all metrics that are built, each once."""
    found = {id(config): config for catalog in catalogs for config, _ in catalog.built}
    return list(found.values())


def dead_judges(catalogs: Iterable[MetricCatalog], gateway: Gateway) -> tuple[Problem, ...]:
    """Return a problem for each judge of which every call failed alike, at the first metric that asks it."""
    built = [entry for catalog in catalogs for entry in catalog.built if isinstance(_model_of(entry[1]), ModelSpec)]
    places = {_model_of(metric): config.where for config, metric in reversed(built)}
    return tuple(
        Problem(_why_dead(model, error), places[model].file, places[model].line, kind=Kind.JUDGE)
        for model, error in gateway.dead().items()
        if model in places
    )


def _model_of(metric: Metric) -> Any:
    return getattr(metric, "model", None)


def _why_dead(model: ModelSpec, error: str) -> str:
    address = endpoint(model)
    at = f" at {display_url(address)}" if address else ""
    fix = "correct its key, its `endpoint` or its name; `agenteval run --failed` scores these cases again"
    return f"the judge {model.label}{at} failed in every call: {error.removeprefix(f'{model.label} ')}; {fix}"


def _placed(problem: Problem, config: MetricConfig) -> Problem:
    return problem if problem.file else replace(problem, file=config.where.file, line=config.where.line)


async def score_turn(
    configs: Iterable[MetricConfig],
    observation: Observation,
    catalog: MetricCatalog,
    unjudged: NotAskedError | None = None,
) -> list[Score]:
    """Score one turn with every metric, in suite order; judges run concurrently.

    Args:
        unjudged: why judges with limits of their suite do not score the turn, if they do not.
    """
    metrics: list[tuple[MetricConfig, Metric]] = [(config, catalog.get(config)) for config in configs]
    scores = [
        _left_out(config, unjudged)
        if unjudged is not None and config.judge_limits is not None
        else _score(config, metric, observation, catalog.timeouts)
        for config, metric in metrics
    ]
    if any(_asks(metric) for _, metric in metrics):
        return await asyncio.gather(*scores)
    return [await score for score in scores]


def _asks(metric: Metric) -> bool:
    return _is_coroutine_function(getattr(type(metric), "measure", None))


@cache
def _is_coroutine_function(function: Callable[..., object] | None) -> bool:
    # Cached, because every score needs it.
    return inspect.iscoroutinefunction(function)


async def score_case(
    config: MetricConfig, observations: Sequence[Observation], catalog: MetricCatalog
) -> list[Score]:
    """Score all iterations of a case together; one score for each, in order."""
    metric: CaseMetric = catalog.get(config)
    started = time.perf_counter()
    try:
        outcomes = await _outcomes_of_case(config, metric, observations)
        return [_scored(config, outcome, started) for outcome in outcomes]
    except NotAskedError as error:
        return [_not_asked(config, error)] * len(observations)
    except InfrastructureError:
        raise
    except AgentEvalError as error:
        return [_error(config, str(error), started)] * len(observations)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - one broken metric must not end the run
        return [_error(config, f"{type(error).__name__}: {error}", started)] * len(observations)


async def _outcomes_of_case(
    config: MetricConfig, metric: CaseMetric, observations: Sequence[Observation]
) -> list[Outcome | None]:
    async with _time_limit(config.timeout_s if _is_callers(config) else None):
        if _is_callers(config) and not inspect.iscoroutinefunction(metric.measure_all):
            found = await in_thread(lambda: metric.measure_all(observations))
        else:
            found = metric.measure_all(observations)
        measured = await contained(found) if inspect.isawaitable(found) else found
    return [_outcome(config, item) for item in outcome_list(measured, len(observations))]


async def _score(config: MetricConfig, metric: Metric, observation: Observation, timeouts: PatternTimeouts) -> Score:
    started = time.perf_counter()
    try:
        missing = sorted(name for name in requirements(metric) if not _has(observation, name))
        if missing:
            return _not_applicable(config, missing)
        with timeouts.counting(config.where):
            return _scored(config, await _measure(config, metric, observation), started)
    except NotAskedError as error:
        return _not_asked(config, error)
    except NotApplicableError as error:
        return skipped_score(config, str(error))
    except InfrastructureError:
        raise
    except AgentEvalError as error:
        return _error(config, str(error), started)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - one broken metric must not end the run
        return _error(config, f"{type(error).__name__}: {error}", started)


def _scored(config: MetricConfig, outcome: Outcome | None, started: float) -> Score:
    if outcome is None:
        return skipped_score(config, "the metric does not apply")
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
        gating=config.gating,
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
    # The loader has checked the ground truths of cases; only a single turn can lack one.
    checked = missing == ["ground_truth"] and config.kind == "standard"
    if config.requested_by in {"case", "turn"} and not checked:
        # The case names this metric, so skipping it would hide a mistake.
        return _error(config, f"this {config.requested_by} asks for {config.id} but has no {what}", None)
    return skipped_score(config, f"the case has no {what}")


def skipped_score(config: MetricConfig, reason: str) -> Score:
    """Return the score of a metric that does not apply."""
    return Score(
        id=config.id,
        kind=config.kind,
        score=None,
        threshold=config.threshold,
        passed=None,
        status="skipped",
        gating=config.gating,
        reason=reason,
    )


async def _left_out(config: MetricConfig, error: NotAskedError) -> Score:
    return _not_asked(config, error)


def _not_asked(config: MetricConfig, error: NotAskedError) -> Score:
    reason = NotAsked(cause=error.cause, limit=error.limit)
    return skipped_score(config, str(error)).model_copy(update={"not_asked": reason})


def _judge(config: MetricConfig) -> str | None:
    model = config.options.get("model")
    return model.label if isinstance(model, ModelSpec) else None


async def _measure(config: MetricConfig, metric: Metric, observation: Observation) -> Outcome | None:
    if config.response_path is not None:
        try:
            observation = replace(observation, response=text_at_path(observation.response, config.response_path))
        except ValueError as error:
            return Outcome(0.0, passed=False, decided=True, reason=str(error))
    if _is_quick(config, metric, observation):
        found = metric.measure(observation)
        return _outcome(config, await contained(found) if inspect.isawaitable(found) else found)
    for attempt in range(config.retries + 1):
        try:
            return await _attempt(config, metric, observation)
        except PatternGivenUpError:
            raise
        except Exception:
            if attempt == config.retries:
                raise
    raise AssertionError("the last attempt returns or raises")


def _is_quick(config: MetricConfig, metric: Metric, observation: Observation) -> bool:
    may_fail = config.retries or _is_callers(config) or _asks(metric)
    limit_s = getattr(metric, "default_limit_s", None) if config.timeout_s is None else config.timeout_s
    return not may_fail and limit_s is None and not _may_take_long(metric, observation)


async def _attempt(config: MetricConfig, metric: Metric, observation: Observation) -> Outcome | None:
    # A caller's code may block, and long answers and patterns take time. In a thread the time limit applies, and
    # running agents and other metrics do not wait.
    in_a_thread = not _asks(metric) and (_is_callers(config) or _may_take_long(metric, observation))
    limit_s = getattr(metric, "default_limit_s", None) if config.timeout_s is None else config.timeout_s
    async with _time_limit(limit_s):
        result = await in_thread(lambda: metric.measure(observation)) if in_a_thread else metric.measure(observation)
        return _outcome(config, await contained(result) if inspect.isawaitable(result) else result)


def _time_limit(seconds: float | None) -> AbstractAsyncContextManager[None]:
    return nullcontext() if seconds is None else _limited(seconds)


@asynccontextmanager
async def _limited(seconds: float) -> AsyncIterator[None]:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
        raise AgentEvalError(f"no result within {seconds:g} s") from None


def _is_callers(config: MetricConfig) -> bool:
    return config.metric is not None


def _outcome(config: MetricConfig, measured: object) -> Outcome | None:
    return checked_outcome(measured) if _is_callers(config) else outcome_of(measured)


def _may_take_long(metric: Metric, observation: Observation) -> bool:
    return len(observation.response) > _LONG or getattr(metric, "has_patterns", False)


def _verdict(config: MetricConfig, outcome: Outcome, score: float) -> bool | None:
    if not config.gating:
        return None
    if config.threshold is None or outcome.decided:
        return outcome.passed
    # Every score reaches a threshold of 0, so it decides nothing.
    return score >= config.threshold if config.threshold > 0 else None


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
        gating=config.gating,
        error=message,
        model=_judge(config),
        duration_ms=None if started is None else _elapsed_ms(started),
    )


def _elapsed_ms(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)
