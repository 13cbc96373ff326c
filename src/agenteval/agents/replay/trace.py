"""What a trace is: one recorded answer of an agent, and how its fields are found."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from agenteval.results.record.fields import Record


@dataclass(frozen=True, slots=True)
class Trace:
    """One recorded answer.

    Attributes:
        line: its 1-based line in the file.
        trace_id: empty where the record has none.
        iteration: which pass over the inputs it belongs to, from 0.
        persona: who asked.
        input: what was asked; JSON text where it is no text.
        output: the answer; JSON text where it is no text, empty where there is none.
        duration_ms: the time it took.
        success: what the record says of itself.
        record: everything, for fields that are named by their path.
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
    """A line that is no trace: where it stands, what is wrong, and what would be right."""

    file: Path
    line: int
    message: str
