"""The project of a FluxLoop suite: its inputs and settings. ConfigError."""

from __future__ import annotations

from contextlib import suppress

from tests.fuzz.scratch import as_file

from agenteval.core.errors import ConfigError
from agenteval.suite.formats.fluxloop.suite import load_fluxloop

_EVALUATION = b"""\
evaluators:
  - {name: done, type: rule_based, enabled: true, weight: 1, rules: [{check: output_not_empty}]}
"""


def target(data: bytes) -> None:
    as_file(data, "fluxloop_project/configs/input.yaml")
    as_file(data, "fluxloop_project/inputs/generated.yaml")
    with suppress(ConfigError):
        load_fluxloop(as_file(_EVALUATION, "fluxloop_project/configs/evaluation.yaml"), "configs/evaluation.yaml")
