"""Recordings and traces: the interface that all formats of recordings share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from pydantic import ValidationError

from agenteval.agents.base import MOST_OF_STREAM, Reply, check_size
from agenteval.core.errors import AgentError, Kind, Problem
from agenteval.core.files import read_head, read_lines
from agenteval.core.records import dataclass, field
from agenteval.results.record import Record

if TYPE_CHECKING:
    from agenteval.agents.otel_messages import Export


@dataclass(frozen=True)
class RecordedTurn:
    """One recorded exchange.

    Attributes:
        input: the question; ``None`` if the recording does not contain it, or identifies the turn by its case.
    """

    answer: Reply | str
    input: str | None = None


# By turn and by iteration, from 0; turns that were not recorded are missing.
RecordedIteration = Mapping[int, RecordedTurn]
RecordedCase = Mapping[int, RecordedIteration]


@dataclass(frozen=True)
class RecordedQuestion:
    """A case whose recorded answers are searched for."""

    case_id: str
    name: str
    inputs: tuple[str, ...]


class Recording(Protocol):
    """Recorded answers of any format.

    Attributes:
        is_run: whether the recording is a run, which is replayed in full; otherwise answers are selected from it.
    """

    is_run: ClassVar[bool]

    def find(self, asked: RecordedQuestion) -> RecordedCase:
        """Return the answers recorded for a case; empty without any."""
        ...

    def notices(self, asked: Iterable[RecordedQuestion]) -> tuple[str, ...]:
        """Return notices about the recording, after all cases of the run were searched for."""
        ...


@dataclass(frozen=True)
class Trace:
    """One recorded answer.

    Attributes:
        line: its 1-based line in the file.
        iteration: the iteration of the question, from 0.
        input: the question; JSON text if it is not text.
        output: the answer; JSON text if it is not text, empty without one.
        duration_ms: the duration in milliseconds.
        success: the record's ``success`` field.
        record: the whole record, for fields named by path.
    """

    line: int
    trace_id: str
    iteration: int
    persona: str | None
    input: str
    output: str
    duration_ms: float | None
    success: bool | None
    record: Record = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class BadLine:
    """A line that is not a trace: its place, and the problem with its fix."""

    file: Path
    line: int
    message: str


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
    from agenteval.agents.otel_messages import Export

    for number, line in read_lines(file, LONGEST_LINE):
        if line is None:
            limit = LONGEST_LINE // 1_000_000
            yield BadLine(file, number, f"the line is longer than {limit} MB; let the collector send smaller batches")
        elif line.strip():
            try:
                check_size(line, MOST_OF_STREAM)
                yield number, Export.model_validate_json(line)
            except AgentError as error:
                yield BadLine(file, number, f"{error}; let the collector send smaller batches")
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
