"""Results of earlier runs in a directory. No error: what cannot be read is a warning."""

from __future__ import annotations

from tests.fuzz.scratch import as_file

from agenteval.results.history import read_history

_SOUND = b"""{"schema_version": 1, "run": {"id": "sound", "started_at": "2026-01-01T00:00:00Z",
"finished_at": "2026-01-01T00:00:01Z", "duration_s": 1.0}, "summary": {"cases": 0, "passed": 0, "failed": 0,
"errors": 0, "skipped": 0}, "suites": []}"""


def target(data: bytes) -> None:
    as_file(_SOUND, "history/results-sound.json")
    history = read_history(as_file(data, "history/results.json").parent)
    assert len(history.runs) + len(history.warnings) > 0
