"""agenteval.yaml. ConfigError."""

from __future__ import annotations

from contextlib import suppress

from tests.fuzz.scratch import as_file

from agenteval.core.errors import ConfigError
from agenteval.run.resolve.configurations import read_config


def target(data: bytes) -> None:
    with suppress(ConfigError):
        read_config(as_file(data, "config/agenteval.yaml"))
