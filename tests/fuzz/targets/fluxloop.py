"""FluxLoop's evaluation.yaml. ConfigError."""

from __future__ import annotations

from contextlib import suppress

from tests.fuzz.scratch import as_file

from agenteval.core.errors import ConfigError
from agenteval.suite.formats.fluxloop import is_fluxloop
from agenteval.suite.formats.fluxloop.suite import load_fluxloop


def target(data: bytes) -> None:
    path = as_file(data, "fluxloop/configs/evaluation.yaml")
    is_fluxloop(path)
    with suppress(ConfigError):
        load_fluxloop(path, "configs/evaluation.yaml")
