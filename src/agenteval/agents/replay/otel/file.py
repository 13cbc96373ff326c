"""Reads OpenTelemetry files as the collector's file exporter writes them: one JSON request per line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from agenteval.core.documents.lines import read_head, read_lines
from agenteval.core.errors import Kind, Problem

if TYPE_CHECKING:
    from agenteval.agents.replay.otel.shape import Export
    from agenteval.agents.replay.trace import BadLine

# Bytes; a line is one export request of an agent, often with thousands of spans.
LONGEST_LINE = 100_000_000
_START = re.compile(rb'\s*\{\s*"resource(?:Spans|Logs|Metrics)"\s*:')
_HEAD = 4096


def is_otel(file: Path) -> bool:
    """Return whether a file, plain or gzip'ed, contains OpenTelemetry data as JSON."""
    return _START.match(read_head(file, _HEAD)) is not None


def read_exports(file: Path) -> Iterator[tuple[int, Export] | BadLine]:
    """Yield every line of a file with its number, except blank lines.

    Raises:
        ConfigError: the file cannot be read.
    """
    # Imported here: every recording is inspected, and few have this format.
    from agenteval.agents.replay.otel.shape import Export
    from agenteval.agents.replay.trace import BadLine

    for number, line in read_lines(file, LONGEST_LINE):
        if line is None:
            limit = LONGEST_LINE // 1_000_000
            yield BadLine(file, number, f"the line is longer than {limit} MB; let the collector send smaller batches")
        elif line.strip():
            try:
                yield number, Export.model_validate_json(line)
            except ValidationError as error:
                yield BadLine(file, number, _mistake(error))


def _mistake(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    if first["type"] == "json_invalid":
        return f"{first['msg']}; each line must be one whole JSON object with `resourceSpans`"
    path = ".".join(map(str, first["loc"]))
    return str(
        Problem(f"{first['msg']}; each line must be an ExportTraceServiceRequest of OTLP", path=path, kind=Kind.FILE)
    )
