"""results.json, of this and any other version, with its baseline. ConfigError."""

from __future__ import annotations

from contextlib import suppress

from agenteval.core.errors import ConfigError
from agenteval.results.store import parse_results


def target(data: bytes) -> None:
    with suppress(ConfigError):
        # What was read can be written and read again.
        results = parse_results(data, "results.json")
        parse_results(results.model_dump_json().encode(), "written")
