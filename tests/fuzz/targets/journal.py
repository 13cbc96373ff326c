"""The journal that --resume finds. ConfigError; what it keeps can be read again for the reports."""

from __future__ import annotations

from contextlib import suppress

from tests.fuzz.scratch import as_file

from agenteval.core.errors import ConfigError
from agenteval.results.case import CaseResult
from agenteval.run.resume import _read
from agenteval.run.store import parsed


def target(data: bytes) -> None:
    path = as_file(data, "journal/journal.jsonl")
    with suppress(ConfigError):
        earlier, _ = _read(path)
        assert earlier.kept <= len(data)
        with path.open("rb") as lines:
            for (_, case_id), (place, size) in earlier.complete.items():
                lines.seek(place)
                assert parsed(CaseResult, lines.read(size)).id == case_id
