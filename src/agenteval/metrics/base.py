"""The interface of metrics; `registry.py` finds metrics by name."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Iterable, Mapping, Sequence, Set
from numbers import Real
from typing import Any, Protocol

from pydantic import InstanceOf

from agenteval.core.arguments import JsonObject, described, problems
from agenteval.core.errors import AgentEvalError
from agenteval.core.records import dataclass, field, replace
from agenteval.core.secrets import beginning, mask
from agenteval.results.case import ToolCall, Usage

_SHOWN = 80


def literal_equal(expected: Any, actual: Any) -> bool:
    """Return whether two values are equal; 1 equals 1.0, but a boolean equals only a boolean.

    An integer and a float are compared as floats, so 2**53 + 1 equals 9007199254740992.0.
    """
    if isinstance(expected, bool) or isinstance(actual, bool):
        return isinstance(expected, bool) and isinstance(actual, bool) and expected == actual
    if isinstance(expected, int | float) and isinstance(actual, int | float):
        return _same_number(expected, actual)
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(literal_equal, expected, actual))
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(
            literal_equal(value, actual[key]) for key, value in expected.items()
        )
    return type(expected) is type(actual) and bool(expected == actual)


def _same_number(expected: float, actual: float) -> bool:
    if type(expected) is type(actual):
        return expected == actual
    try:
        return float(expected) == float(actual)
    except OverflowError:
        return False


def shown(value: Any) -> str:
    """Return a value in the form for reasons: short, and with quotes around texts."""
    if isinstance(value, str):
        value = mask(value)
        value = value if len(value) <= _SHOWN else beginning(value, _SHOWN - 1) + "…"
    text = mask(repr(value))
    return text if len(text) <= _SHOWN + 2 else beginning(text, _SHOWN - 1) + "…"


@dataclass(frozen=True)
class Observation:
    """One turn for a metric: the input, the expected answer and the reply.

    ``raised`` is the type and text of the exception that a tool under test raised, if the case accepts an exception
    as the answer. ``trace`` is the record of a trace, for metrics that read fields by path; it is empty if the answer
    is not from a trace.
    """

    input: str
    response: str
    ground_truth: str | None = None
    retrieval_context: tuple[str, ...] | None = None
    tool_calls: tuple[InstanceOf[ToolCall], ...] = ()
    latency_ms: float | None = None
    usage: InstanceOf[Usage] | None = None
    context: tuple[str, ...] | None = None
    case: str = ""
    turn: int = 0
    iteration: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)
    raised: str | None = None
    trace: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources of the answer: the texts of the turn's files, then the retrieved passages."""
        return (*(self.context or ()), *(self.retrieval_context or ()))


@dataclass(frozen=True)
class Outcome:
    """The result of a metric.

    Attributes:
        score: 0 to 1, higher is better.
        passed: the metric's verdict.
        decided: whether ``passed`` holds even if the suite sets a threshold; otherwise the threshold decides.
        reason: one or two sentences for reports.
        details: additional values, as JSON.
        model: the judge, if one was called.
        cost_usd: cost of the judge's calls; ``None`` if the price is unknown.
    """

    score: float
    passed: bool | None = None
    decided: bool = False
    reason: str | None = None
    details: JsonObject | None = None
    model: str | None = None
    cost_usd: float | None = None


class NotApplicableError(AgentEvalError):
    """A metric does not apply to an answer; the message contains the reason."""


class MetricError(AgentEvalError):
    """A metric could not be computed; the message contains the reason."""


#: The fields of an observation that a metric may require.
REQUIRABLE = frozenset({"ground_truth", "retrieval_context", "context", "sources"})

#: A metric's return value: an outcome, a verdict, a score from 0 to 1, or ``None`` if the metric does not apply.
Measured = Outcome | bool | float | None


class Metric(Protocol):
    """A metric that scores one reply, for instance a frozen dataclass whose fields are its options."""

    @property
    def requires(self) -> frozenset[str]:
        """Fields of the observation that the metric needs; if one of them is empty, the metric is skipped.

        Allowed are the names in ``REQUIRABLE``; by default none.
        """
        return frozenset()

    def measure(self, observation: Observation, /) -> Measured | Awaitable[Measured]:
        """Score one reply.

        Raises:
            MetricError: the score cannot be computed.
        """
        ...


class CaseMetric(Protocol):
    """A metric that scores the replies of all iterations of a case together."""

    def measure_all(
        self, observations: Sequence[Observation], /
    ) -> Sequence[Measured] | Awaitable[Sequence[Measured]]:
        """Score all iterations that have a reply; returns one outcome for each, in their order.

        Raises:
            MetricError: the scores cannot be computed.
        """
        ...


def requirements(metric: object) -> frozenset[str]:
    """Return the required fields of a metric; empty if it declares none."""
    found: frozenset[str] = getattr(metric, "requires", frozenset())
    return found


def metric_problem(metric: object) -> str | None:
    """Return why a value is not a metric that can be used; ``None`` if it is one."""
    if isinstance(metric, type):
        return f"{metric.__name__} is a class; give an instance"
    name = type(metric).__name__
    try:
        methods = [getattr(metric, method, None) for method in ("measure", "measure_all")]
    except Exception as error:  # noqa: BLE001 - code of the caller
        return f"{name}.__getattr__ raised {type(error).__name__}: {error}; it must raise AttributeError"
    if not any(map(callable, methods)):
        return f"{name!r} is not a metric; give an instance with `measure`"
    try:
        required: object = requirements(metric)
    except Exception as error:  # noqa: BLE001 - code of the caller
        return f"{name}.requires raised {type(error).__name__}: {error}"
    if not isinstance(required, frozenset):
        return f"{name}.requires is {described(required)}; it must be a frozenset of names"
    unknown = sorted(map(str, required - REQUIRABLE))
    if unknown:
        return f"{name}.requires names {unknown[0]!r}; possible names: {', '.join(sorted(REQUIRABLE))}"
    return None


def checked_outcome(measured: object) -> Outcome | None:
    """Return what the metric of a caller returned as an outcome, as `outcome_of`, with every field checked."""
    outcome = outcome_of(measured)
    if outcome is None:
        return None
    # NumPy and other libraries have number types that are no subclass of float.
    score: object = outcome.score
    if isinstance(score, Real):
        outcome = replace(outcome, score=float(score))
        if not math.isfinite(outcome.score):
            raise MetricError(f"the score is {outcome.score}, not a number from 0 to 1")
    found = problems(outcome, Outcome, "outcome")
    if found:
        raise MetricError("; ".join(map(str, found)))
    return outcome


def outcome_of(measured: object) -> Outcome | None:
    """Convert a metric's return value to an outcome; ``None`` if the metric does not apply."""
    if measured is None or isinstance(measured, Outcome):
        return measured
    if isinstance(measured, bool):
        return Outcome(float(measured), passed=measured)
    if isinstance(measured, Real):
        return Outcome(float(measured))
    found = type(measured).__name__
    raise MetricError(f"the metric returned {found}; it must return an Outcome, a boolean, a number or None")


def outcome_list(measured: object, observations: int) -> list[object]:
    """Return what ``measure_all`` returned as a list."""
    if not isinstance(measured, Iterable) or isinstance(measured, str | bytes | Mapping | Set):
        found = type(measured).__name__
        raise MetricError(f"`measure_all` returned {found}; it must return a list with one outcome per observation")
    outcomes = list(measured)
    if len(outcomes) != observations:
        raise MetricError(f"`measure_all` returned {len(outcomes)} outcomes for {observations} observations")
    return outcomes


def record_of(observation: Observation) -> Mapping[str, Any]:
    """Return the record of the trace, or an equivalent record of the answer."""
    # Imported here: few metrics read records.
    from agenteval.results.record import trace_of_reply

    return observation.trace or trace_of_reply(
        input=observation.input,
        output=observation.response,
        duration_ms=observation.latency_ms,
        iteration=observation.iteration,
        trace_id=observation.case,
        expected=observation.config,
        usage=observation.usage,
        tool_calls=observation.tool_calls,
    )
