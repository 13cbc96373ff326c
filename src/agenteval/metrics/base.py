"""What a metric is: a frozen dataclass with one method. `registry.py` finds it by name."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Protocol

from agenteval.core.errors import AgentEvalError
from agenteval.results.model import ToolCall, Usage
from agenteval.results.record.fields import Record, trace_of_reply


@dataclass(frozen=True, slots=True)
class Observation:
    """One turn as metrics see it: what was asked, what was expected, what came.

    ``raised`` is the exception with which a tool under test refused to answer; ``trace`` is the record of a trace, or
    one made of the reply, for metrics that read fields by their path.
    """

    input: str
    response: str
    ground_truth: str | None = None
    retrieval_context: tuple[str, ...] | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    latency_ms: float | None = None
    usage: Usage | None = None
    context: tuple[str, ...] | None = None
    case: str = ""
    turn: int = 0
    iteration: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)
    raised: str | None = None
    trace: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sources(self) -> tuple[str, ...]:
        """What the answer may rest on: the texts of the turn's files, then the passages retrieved."""
        return (*(self.context or ()), *(self.retrieval_context or ()))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a metric found.

    Attributes:
        score: 0..1, higher is better.
        passed: the metric's own verdict; a threshold in the suite overrules it, unless it is ``decided``.
        reason: one or two sentences for people.
        details: further numbers, as JSON.
        model: the judge, if one was asked.
        cost_usd: what asking took; ``None`` where the price is not known.
    """

    score: float
    passed: bool | None = None
    decided: bool = False
    reason: str | None = None
    details: Mapping[str, Any] | None = None
    model: str | None = None
    cost_usd: float | None = None


class NotApplicableError(AgentEvalError):
    """A metric has nothing to say about an answer; the message says why."""


class MetricError(AgentEvalError):
    """A metric could not be computed; the message says why."""


#: What a metric returns: an outcome, a verdict, a score from 0 to 1, or ``None`` where the metric does not apply.
Measured = Outcome | bool | float | None


class Metric(Protocol):
    """A metric that scores single replies, for instance a frozen dataclass whose fields are its options."""

    @property
    def requires(self) -> frozenset[str]:
        """Fields of the observation that the metric needs; the score is skipped where one is empty.

        ``ground_truth``, ``retrieval_context``, ``context`` and ``sources`` are possible. The default is none.
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
    """Return the fields of an observation that a metric requires; none where it does not declare any."""
    found: frozenset[str] = getattr(metric, "requires", frozenset())
    return found


def outcome_of(measured: object) -> Outcome | None:
    """Return what a metric returned as an outcome; ``None`` where the metric does not apply.

    Raises:
        MetricError: it is not an outcome, a boolean or a number.
    """
    if measured is None or isinstance(measured, Outcome):
        return measured
    if isinstance(measured, bool):
        return Outcome(float(measured), passed=measured)
    if isinstance(measured, Real):
        return Outcome(float(measured))
    kind = type(measured).__name__
    raise MetricError(f"the metric returned {kind}; it must return an Outcome, a boolean, a number or None")


def record_of(observation: Observation) -> Record:
    """The record of the trace, or what would be recorded of the answer."""
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
