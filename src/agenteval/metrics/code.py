"""Metrics in the user's Python code, which runs in a worker process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from agenteval.core.errors import AgentError
from agenteval.core.records import dataclass, field
from agenteval.metrics.base import REQUIRABLE, MetricError, NotApplicableError, Observation, Outcome
from agenteval.metrics.resources import Resources
from agenteval.suite.model import Place

if TYPE_CHECKING:
    from agenteval.metrics.resources import GraderPool

_GRADE = "agenteval.grader:grade"

_PASSING = 0.5
# Time limit of one call in seconds, if the suite sets none: user code can loop for ever or be stopped by a signal.
_CALL_LIMIT_S = 300.0


@dataclass(frozen=True)
class CodeGrader:
    """Calls ``module:callable`` with a ``GraderContext``."""

    grader: str
    resources: Resources
    where: Place
    requires: ClassVar[frozenset[str]] = frozenset()
    default_limit_s: ClassVar[float] = _CALL_LIMIT_S

    def __post_init__(self) -> None:
        self.resources.graders.expect(self.where, self.grader)

    async def measure(self, observation: Observation) -> Outcome:
        """Call the grader; its verdict overrides the threshold."""
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


_EVALUATE = "agenteval.agents.worker.metrics:evaluate"


@dataclass(frozen=True)
class CustomFunction:
    """Calls an evaluation function, which returns a verdict and optionally a score (default: 1 or 0).

    Args:
        function: ``module:function``.
    """

    function: str
    resources: Resources
    where: Place
    parameters: Mapping[str, Any]
    prompt: str | None = None
    context: Mapping[str, Any] | None = None
    requires: ClassVar[frozenset[str]] = frozenset()
    default_limit_s: ClassVar[float] = _CALL_LIMIT_S

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


@dataclass(frozen=True)
class UserMetric:
    """Calls a user function or class with an ``agenteval.grader.Observation``.

    Args:
        reference: ``path.py:name``, ``module:name``, or the entry point of an installed package.
        where: its place in ``agenteval.yaml``; files and modules are searched in the directory of that file.
    """

    reference: str
    resources: Resources
    where: Place
    arguments: Mapping[str, Any] = field(default_factory=dict)
    requires: ClassVar[frozenset[str]] = frozenset()
    default_limit_s: ClassVar[float] = _CALL_LIMIT_S

    def __post_init__(self) -> None:
        expect_metric(self.resources.graders, self.where, self.reference, self.arguments)

    async def measure(self, observation: Observation) -> Outcome:
        """Call the metric."""
        arguments = [self.reference, dict(self.arguments), _answer(observation)]
        try:
            found = await self.resources.graders.call(self.where, f"{_METRICS}:measure", arguments)
        except AgentError as error:
            raise MetricError(str(error)) from None
        if "skipped" in found:
            raise NotApplicableError(found["skipped"])
        return Outcome(score=found["score"], passed=found["passed"], reason=found["reason"], details=found["details"])


def expect_metric(graders: GraderPool, where: Place, reference: str, arguments: Mapping[str, Any]) -> None:
    """Let a pool check that a user's metric exists, takes its options and requires fields that there are."""
    called = "python" if ":" in reference else "type"
    options = [dict(arguments), sorted(REQUIRABLE)]
    graders.expect(where, reference, called, check=f"{_METRICS}:check", options=options)


def _answer(observation: Observation) -> dict[str, Any]:
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
