"""agenteval.yaml. ConfigError."""

from __future__ import annotations

from contextlib import suppress

from tests.fuzz.scratch import as_file

from agenteval.config import read_config
from agenteval.errors import ConfigError


def target(data: bytes) -> None:
    with suppress(ConfigError):
        read_config(as_file(data, "config/agenteval.yaml"))
