"""Definition of an agent that HoloDeck itself runs.

Data only; ``agenteval.agents.holodeck`` runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agenteval.core.errors import Problem

KIND = "holodeck"


@dataclass(frozen=True, slots=True)
class HolodeckProject:
    """A HoloDeck project, without its evaluation.

    Attributes:
        agent: the content of ``agent.yaml``.
        config: the content of ``config.yaml`` and of the user's; empty without both.
        directory: the directory of ``agent.yaml``.
        variables: those of ``.env`` files, for the process.
        model: provider and name of the agent's model.
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
