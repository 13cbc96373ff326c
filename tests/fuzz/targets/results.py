"""results.json, of this and any other version, with its pool. ConfigError."""

from __future__ import annotations

from contextlib import suppress

from agenteval.core.errors import ConfigError
from agenteval.results.store import parse_baseline, parse_results


def target(data: bytes) -> None:
    for parse in (parse_results, parse_baseline):
        with suppress(ConfigError):
            parse(data, "results.json")
    with suppress(ConfigError):
        # What was read can be written and read again.
        results = parse_results(data, "results.json")
        parse_results(results.model_dump_json().encode(), "written")
