"""Definition of a model agent: model, instructions and tools.

Data only; ``agenteval.agents.model.agent`` runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agenteval.core.errors import Problem
from agenteval.core.llm.spec import ModelSpec
from agenteval.suite.model import AgentSpec

if TYPE_CHECKING:
    from agenteval.suite.model_tools import Tool

KIND = "model"


@dataclass(frozen=True, slots=True)
class ModelAgentSpec:
    """A model agent.

    Attributes:
        instructions: the system prompt.
        response_schema: JSON Schema of every answer; ``None`` for free text.
        problems: why it cannot run here, though its suite may be run with another agent.
    """

    model: ModelSpec
    instructions: str
    tools: tuple[Tool, ...] = ()
    response_schema: Mapping[str, Any] | None = None
    problems: tuple[Problem, ...] = ()


def model_agent_of(spec: AgentSpec) -> ModelAgentSpec:
    """Return the parts of an agent of kind ``model``."""
    found: ModelAgentSpec = spec.options["agent"]
    return found
