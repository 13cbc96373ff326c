"""Definition of an agent that a FluxLoop project names: its ``runner``.

Data only; ``agenteval.agents.fluxloop`` runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from agenteval.core.errors import Problem
from agenteval.suite.model import AgentSpec

KIND = "project_runner"


@dataclass(frozen=True, slots=True)
class FluxLoopAgentSpec:
    """The ``runner`` of a project.

    Attributes:
        target: ``module:name`` or ``module:name.attribute``.
        paths: directories of its modules, which precede all others.
        factory: ``module:name`` of a function that makes the instance, if the target is a class.
        factory_kwargs: its arguments.
        stream_path: path of the text in each event of an asynchronous stream.
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
