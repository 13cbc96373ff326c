"""How much of a result is printed."""

from __future__ import annotations

from dataclasses import dataclass, field

from agenteval.report.terminal.commands import NextCommands
from agenteval.results.archive import Archive, InMemory


@dataclass(frozen=True, slots=True)
class Detail:
    """What is printed besides what needs eyes.

    Attributes:
        verbosity: 0; 1 adds all cases with their metrics, and the means; 2 adds the statistics.
        archive: access to the full cases.
        commands: how to go on.
        explained: errors of agents that a message above explains; they are not repeated.
    """

    verbosity: int = 0
    archive: Archive = field(default_factory=InMemory)
    commands: NextCommands = field(default_factory=NextCommands)
    explained: tuple[str, ...] = ()
