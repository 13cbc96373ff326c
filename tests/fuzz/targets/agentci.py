"""AgentCI's TOML. ConfigError."""

from __future__ import annotations

from contextlib import suppress

from tests.fuzz.scratch import as_file

from agenteval.core.errors import ConfigError
from agenteval.suite.formats.agentci.suite import load_agentci


def target(data: bytes) -> None:
    with suppress(ConfigError):
        load_agentci(as_file(data, "agentci/.agentci/evals/fuzz.toml"), ".agentci/evals/fuzz.toml")
