"""Descriptions of frameworks in .agentci/frameworks. ConfigError."""

from __future__ import annotations

from contextlib import suppress

from tests.fuzz.scratch import as_file

from agenteval.agents.frameworks.scan import read_framework
from agenteval.core.errors import ConfigError


def target(data: bytes) -> None:
    with suppress(ConfigError):
        read_framework(as_file(data, "frameworks/own.toml"))
