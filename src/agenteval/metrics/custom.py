"""Evaluation functions of the user: ``f(output, parameters, prompt, context)``, called in a worker process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from agenteval.errors import AgentError
from agenteval.metrics.base import MetricError, Observation, Outcome, Resources
from agenteval.suite.model import Place

_EVALUATE = "agenteval.agents.evaluation:evaluate"


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
