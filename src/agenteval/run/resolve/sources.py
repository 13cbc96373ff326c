"""Where suites, configuration and agents are read from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from agenteval.suite.model import AgentSpec


@dataclass(frozen=True)
class Sources:
    """The files that define suites and agents, which another checkout of the repository has as well.

    Attributes:
        here: the directory that suites and configuration are looked for in.
        suites: files or directories; empty to look for them.
        config: ``agenteval.yaml``; ``None`` to look for it.
        agent: the agent that answers instead of those that the suites name.
    """

    here: Path
    suites: tuple[Path, ...] = ()
    config: Path | None = None
    agent: AgentSpec | str | None = None

    def moved(self, there: Callable[[Path], Path]) -> Sources:
        """Return the same files in another checkout.

        Args:
            there: maps a path to the path in that checkout.
        """
        return replace(
            self,
            here=there(self.here),
            suites=tuple(map(there, self.suites)),
            config=there(self.config) if self.config else None,
        )
