"""One evaluated answer as analyses see it: numbers and short texts, so that very many fit into memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One answer, or one recorded trace, with its scores.

    Attributes:
        case_id: its case in results.json.
        name: what it is called in reports.
        trace_id: of a recorded trace.
        order: its place in time: the iteration of a trace, or of a run.
        persona: who asked.
        success: whether there was an answer and nothing says that it failed.
        duration_ms: the time it took.
        tokens: input and output together.
        scores: metric id → score, 0..1; those that are absent are in ``absent``.
        absent: metric id → why there is no score.
        final_score: the aggregate; ``None`` where nothing could be scored.
        passed: whether it is good enough.
        reasons: metric id → why its score is not 1, in short.
        tool_checks: check → shares of tool calls for which it held, as far as the trace tells.
    """

    case_id: str
    name: str
    trace_id: str = ""
    order: int = 0
    persona: str | None = None
    success: bool = True
    duration_ms: float | None = None
    tokens: int | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    final_score: float | None = None
    passed: bool | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    tool_checks: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
