"""What a command agent prints. AgentError."""

from __future__ import annotations

from contextlib import suppress

from agenteval.agents.command import parse_output
from agenteval.core.errors import AgentError


def target(data: bytes) -> None:
    with suppress(AgentError):
        parse_output(data).response.encode()
