"""Finds out by its content what kind of recording a file is, and reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agenteval.agents.replay.otel.file import is_otel
from agenteval.agents.replay.recording import Recording
from agenteval.core.documents.lines import read_head

_HEAD = 1 << 20


def read_recording(path: Path) -> Recording:
    """The recorded answers of a file.

    Args:
        path: JSON Lines of replies; what OpenTelemetry's collector exported; results of agenteval, HoloDeck, FluxLoop
            or promptfoo, or the folder that holds them.

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
    """Whether a file holds the results of a run: one JSON document, or the scored traces of FluxLoop."""
    first = read_head(path, _HEAD).lstrip().split(b"\n", 1)[0]
    value = _json(first)
    if isinstance(value, dict):
        return "case" not in value and ("scores" in value or "schema_version" in value or path.suffix == ".json")
    # A document over several lines, or one whose only line is very long.
    return first.startswith(b"{") and (first.strip() == b"{" or path.suffix == ".json")


def _json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
