"""FluxLoop's traces, plain and gzip'ed; a bad line is an item of its own. ConfigError."""

from __future__ import annotations

import json
from contextlib import suppress

from tests.fuzz.scratch import as_file

from agenteval.errors import ConfigError
from agenteval.traces.model import BadLine
from agenteval.traces.read import read_traces


def target(data: bytes) -> None:
    with suppress(ConfigError):
        for item in read_traces(as_file(data, "traces/per_trace.jsonl")):
            if isinstance(item, BadLine):
                assert item.message
            else:
                json.dumps(item.record)
