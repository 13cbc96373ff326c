"""Metrics that are the user's Python code, called in a worker process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from agenteval.core.errors import AgentError
from agenteval.metrics.base import MetricError, NotApplicableError, Observation, Outcome
from agenteval.metrics.resources.resources import Resources
from agenteval.suite.model import Place

_GRADE = "agenteval.grader:grade"

_PASSING = 0.5


@dataclass(frozen=True, slots=True)
class CodeGrader:
    """Calls ``module:callable`` with a ``GraderContext``.

    Args:
        grader: the callable.
        where: the suite's place; modules are imported from its directory.
    """

    grader: str
    resources: Resources
    where: Place
    requires: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        self.resources.graders.expect(self.where, self.grader)

    async def measure(self, observation: Observation) -> Outcome:
        """Call the grader; its own verdict stands, whatever the threshold says."""
        try:
            found = await self.resources.graders.call(self.where, _GRADE, [self.grader, _turn(observation)])
        except AgentError as error:
            raise MetricError(str(error)) from None
        passed = found["passed"]
        return Outcome(
            score=found["score"],
            passed=found["score"] >= _PASSING if passed is None else passed,
            decided=passed is not None,
            reason=found["reason"],
            details=found["details"],
        )


def _turn(observation: Observation) -> dict[str, Any]:
    """The fields of ``agenteval.grader.GraderContext`` as JSON."""
    passages = observation.retrieval_context
    return {
        "turn_input": observation.input,
        "agent_response": observation.response,
        "ground_truth": observation.ground_truth,
        "tool_invocations": [call.model_dump() for call in observation.tool_calls],
        "retrieval_context": list(passages) if passages else None,
        "turn_index": observation.turn,
        "test_case_name": observation.case,
        "turn_config": dict(observation.config),
    }


_EVALUATE = "agenteval.agents.worker.evaluation:evaluate"


@dataclass(frozen=True, slots=True)
class CustomFunction:
    """The score of a function, or 1 and 0 by its verdict where it gives none; its verdict stands.

    Args:
        function: ``module:function``.
        parameters: handed on as they stand in the suite, as are
        prompt: and
        context:.
        where: the suite's place; modules are imported from its directory.
    """

    function: str
    resources: Resources
    where: Place
    parameters: Mapping[str, Any]
    prompt: str | None = None
    context: Mapping[str, Any] | None = None
    requires: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        self.resources.graders.expect(self.where, self.function, "function")

    async def measure(self, observation: Observation) -> Outcome:
        """Call the function."""
        arguments = {
            "output": observation.response,
            "parameters": dict(self.parameters),
            "prompt": self.prompt,
            "context": None if self.context is None else dict(self.context),
        }
        try:
            found = await self.resources.graders.call(self.where, _EVALUATE, [self.function, arguments])
        except AgentError as error:
            raise MetricError(str(error)) from None
        score = float(found["passed"]) if found["score"] is None else found["score"]
        return Outcome(
            score=score, passed=found["passed"], decided=True, reason=found["message"], details=found["metadata"]
        )


_METRICS = "agenteval.agents.worker.metrics"


@dataclass(frozen=True, slots=True)
class UserMetric:
    """A function or class of the user that gets an ``agenteval.grader.Observation``.

    Args:
        reference: ``path.py:name``, ``module:name``, or the entry point of an installed package.
        arguments: its options.
        where: the place in ``agenteval.yaml``; files and modules are looked for in its directory.
    """

    reference: str
    resources: Resources
    where: Place
    arguments: Mapping[str, Any] = field(default_factory=dict)
    requires: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        called = "python" if ":" in self.reference else "type"
        self.resources.graders.expect(
            self.where, self.reference, called, check=f"{_METRICS}:check", options=[dict(self.arguments)]
        )

    async def measure(self, observation: Observation) -> Outcome:
        """Call the metric.

        Raises:
            NotApplicableError: it has nothing to say about this answer.
            MetricError: it raised, or returned what it may not.
        """
        arguments = [self.reference, dict(self.arguments), _answer(observation)]
        try:
            found = await self.resources.graders.call(self.where, f"{_METRICS}:measure", arguments)
        except AgentError as error:
            raise MetricError(str(error)) from None
        if "skipped" in found:
            raise NotApplicableError(found["skipped"])
        return Outcome(score=found["score"], passed=found["passed"], reason=found["reason"], details=found["details"])


def _answer(observation: Observation) -> dict[str, Any]:
    """The fields of ``agenteval.grader.Observation`` as JSON."""
    return {
        "input": observation.input,
        "response": observation.response,
        "ground_truth": observation.ground_truth,
        "retrieval_context": list(observation.retrieval_context) if observation.retrieval_context else None,
        "tool_calls": [call.model_dump() for call in observation.tool_calls],
        "latency_ms": observation.latency_ms,
        "usage": observation.usage.model_dump() if observation.usage else None,
        "context": list(observation.context) if observation.context else None,
        "case": observation.case,
        "turn": observation.turn,
        "iteration": observation.iteration,
        "config": dict(observation.config),
        "raised": observation.raised,
        "trace": dict(observation.trace),
    }
