"""The locations of suites, configuration and agents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from agenteval.suite.model import AgentSpec, MetricConfig


@dataclass(frozen=True)
class Sources:
    """The files that define suites and agents; they can be mapped to another checkout of the repository.

    Attributes:
        here: the directory to search for suites and configuration.
        suites: files or directories; empty to search for them.
        config: ``agenteval.yaml``; ``None`` to search for it.
        agent: the agent that replaces the agents of the suites.
        metrics: metrics to add to every case.
    """

    here: Path
    suites: tuple[Path, ...] = ()
    config: Path | None = None
    agent: AgentSpec | str | None = None
    metrics: tuple[MetricConfig, ...] = ()

    def moved(self, there: Callable[[Path], Path]) -> Sources:
        """Return the same files in another checkout.

        Args:
            there: returns the path in that checkout for a path in this one.
        """
        return replace(
            self,
            here=there(self.here),
            suites=tuple(map(there, self.suites)),
            config=there(self.config) if self.config else None,
        )
