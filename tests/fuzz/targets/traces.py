"""FluxLoop's traces, plain and gzip'ed; a bad line is an item of its own. ConfigError."""

from __future__ import annotations

import json
from contextlib import suppress

from tests.fuzz.scratch import as_file

from agenteval.agents.recorded_cases import read_traces
from agenteval.agents.recording import BadLine
from agenteval.core.errors import ConfigError


def target(data: bytes) -> None:
    with suppress(ConfigError):
        for item in read_traces(as_file(data, "traces/per_trace.jsonl")):
            if isinstance(item, BadLine):
                assert item.message
            else:
                json.dumps(item.record)
