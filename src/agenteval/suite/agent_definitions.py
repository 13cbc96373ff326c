"""Definitions of agents: of a model with tools, and of projects of FluxLoop and HoloDeck."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agenteval.core.errors import Problem
from agenteval.core.llm.models import ModelSpec
from agenteval.core.records import asdict, dataclass, field
from agenteval.suite.model import AgentSpec

if TYPE_CHECKING:
    from agenteval.suite.model_tools import Tool


# Definition of a model agent: model, instructions and tools.
#
# Data only; ``agenteval.agents.model_agent`` runs it.


MODEL_AGENT = "model"


@dataclass(frozen=True)
class ModelAgentSpec:
    """A model agent.

    Attributes:
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


# Definition of an agent that a FluxLoop project names: its ``runner``.
#
# Data only; ``agenteval.agents.python`` runs it.


FLUXLOOP_AGENT = "project_runner"


@dataclass(frozen=True)
class FluxLoopAgentSpec:
    """The ``runner`` of a project.

    Attributes:
        target: ``module:name`` or ``module:name.attribute``.
        paths: directories of its modules, which precede all others.
        factory: ``module:name`` of a function that makes the instance, if the target is a class.
        problems: why it cannot run here, though its suite may be run with another agent.
    """

    target: str
    paths: tuple[str, ...] = ()
    factory: str | None = None
    factory_kwargs: Mapping[str, Any] = field(default_factory=dict, repr=False)
    stream_path: str | None = None
    problems: tuple[Problem, ...] = ()

    def settings(self) -> dict[str, Any]:
        """Return the values for the worker process, as JSON."""
        return {name: value for name, value in asdict(self).items() if name not in {"paths", "problems"}}


def fluxloop_agent_of(spec: AgentSpec) -> FluxLoopAgentSpec:
    """Return the parts of an agent of kind ``project_runner``."""
    found: FluxLoopAgentSpec = spec.options["agent"]
    return found


# Definition of an agent that HoloDeck itself runs.
#
# Data only; ``agenteval.agents.python`` runs it.


HOLODECK_AGENT = "holodeck"


@dataclass(frozen=True)
class HolodeckProject:
    """A HoloDeck project, without its evaluation.

    Attributes:
        config: the content of ``config.yaml`` and of the user's; empty without both.
        variables: those of ``.env`` files, for the process.
        problems: why it cannot run here, though its suite may be run with another agent.
    """

    agent: Mapping[str, Any] = field(repr=False)
    config: Mapping[str, Any] = field(repr=False)
    directory: str
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    model: str = ""
    problems: tuple[Problem, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return what the worker needs."""
        return {"agent": dict(self.agent), "config": dict(self.config), "directory": self.directory}
