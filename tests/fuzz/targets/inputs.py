"""The inputs of the action: every line is `name=value`; a line without a name is the value of all. ConfigError."""

from __future__ import annotations

from contextlib import suppress

from agenteval.core.errors import ConfigError
from agenteval.github.inputs import read_inputs
from agenteval.run.options import INPUTS


def target(data: bytes) -> None:
    environment: dict[str, str] = {}
    for line in data.decode("utf-8", "replace").split("\n"):
        name, equals, value = line.partition("=")
        names = (name,) if equals else INPUTS
        environment |= {f"INPUT_{key.upper()}": value if equals else name for key in names}
    with suppress(ConfigError):
        read_inputs(environment)
