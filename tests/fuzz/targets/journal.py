"""The journal that --resume finds. ConfigError."""

from __future__ import annotations

from contextlib import suppress

from tests.fuzz.scratch import as_file

from agenteval.core.errors import ConfigError
from agenteval.run.journal.resume import _read


def target(data: bytes) -> None:
    with suppress(ConfigError):
        earlier, _ = _read(as_file(data, "journal/journal.jsonl"))
        assert earlier.kept.size <= len(data)
