"""Detects the format of a recording by its content, and reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agenteval.agents.replay.otel.file import is_otel
from agenteval.agents.replay.recording import Recording
from agenteval.core.documents.lines import read_head

_HEAD = 1 << 20


def read_recording(path: Path) -> Recording:
    """Read the recorded answers of a file.

    Args:
        path: JSON Lines of replies; exports of the OpenTelemetry collector; results of agenteval, HoloDeck, FluxLoop
            or promptfoo, or the directory that contains them.

    Raises:
        ConfigError: it cannot be read.
    """
    if is_otel(path):
        from agenteval.agents.replay.traces import read_recorded_traces

        return read_recorded_traces(path)
    if path.is_dir() or _is_run(path):
        from agenteval.agents.replay.results import read_recorded_results

        return read_recorded_results(path)
    from agenteval.agents.replay.lines import read_recorded_lines

    return read_recorded_lines(path)


def _is_run(path: Path) -> bool:
    """Return whether a file contains the results of a run: one JSON document, or FluxLoop's scored traces."""
    first = read_head(path, _HEAD).lstrip().split(b"\n", 1)[0]
    value = _json(first)
    if isinstance(value, dict):
        return "case" not in value and ("scores" in value or "schema_version" in value or path.suffix == ".json")
    # A results document with several lines, or with one very long line.
    return first.startswith(b"{") and (first.strip() == b"{" or path.suffix == ".json")


def _json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
