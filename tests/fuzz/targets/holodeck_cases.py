"""The file that test_cases_file of an agent.yaml names. ConfigError."""

from __future__ import annotations

from contextlib import suppress

from tests.fuzz.scratch import as_file

from agenteval.core.errors import ConfigError
from agenteval.suite.formats.holodeck.suite import load_holodeck

_SUITE = b"""\
name: fuzz
test_cases_file: cases.yaml
evaluations:
  metrics:
    - {type: standard, metric: equality}
"""


def target(data: bytes) -> None:
    as_file(data, "holodeck_cases/cases.yaml")
    with suppress(ConfigError):
        load_holodeck(as_file(_SUITE, "holodeck_cases/agent.yaml"), "agent.yaml")
