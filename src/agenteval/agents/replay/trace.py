"""A trace: one recorded answer of an agent, and access to its fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from agenteval.results.record.fields import Record


@dataclass(frozen=True, slots=True)
class Trace:
    """One recorded answer.

    Attributes:
        line: its 1-based line in the file.
        trace_id: empty if the record has none.
        iteration: the iteration of the question, from 0.
        persona: name of the simulated user.
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


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is not a trace: its place, and the problem with its fix."""

    file: Path
    line: int
    message: str
