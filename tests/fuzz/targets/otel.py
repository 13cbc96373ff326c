"""OpenTelemetry's traces as the collector exports them; a bad line is an item of its own. ConfigError."""

from __future__ import annotations

from contextlib import suppress

from tests.fuzz.scratch import as_file

from agenteval.agents.traces import read_answers, read_otel_traces
from agenteval.core.errors import ConfigError


def target(data: bytes) -> None:
    file = as_file(data, "otel/traces.jsonl")
    for read in (read_answers, read_otel_traces):
        with suppress(ConfigError):
            for item in read(file):
                str(item)
