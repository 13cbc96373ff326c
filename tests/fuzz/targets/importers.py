"""Runs that other tools recorded. ConfigError."""

from __future__ import annotations

from contextlib import suppress

from tests.fuzz.scratch import as_file

from agenteval.core.errors import ConfigError
from agenteval.results.importers.base import suites_of
from agenteval.results.importers.detect import read_run


def target(data: bytes) -> None:
    for name in ("run.json", "per_trace.jsonl"):
        with suppress(ConfigError):
            results, lacking = read_run(as_file(data, f"importers/{name}"))
            assert all(lacking)
            suites_of(results)
            cases = [case for _, case in results.cases()]
            assert len({case.id for case in cases}) == len(cases)
            assert all(0 <= (score.score or 0) <= 1 for case in cases for turn in case.turns for score in turn.scores)
            results.model_dump_json()
