"""HoloDeck's agent.yaml. ConfigError."""

from __future__ import annotations

from contextlib import suppress

from tests.fuzz.scratch import as_file

from agenteval.core.errors import ConfigError
from agenteval.suite.formats.holodeck.suite import load_holodeck


def target(data: bytes) -> None:
    with suppress(ConfigError):
        load_holodeck(as_file(data, "holodeck/agent.yaml"), "agent.yaml")
