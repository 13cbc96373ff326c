"""An answer as a line of per_trace.jsonl, in FluxLoop's form with some more keys."""

from __future__ import annotations

from typing import Any

from agenteval.analysis.model import Evaluated


def trace_json(answer: Evaluated) -> dict[str, Any]:
    """One line of per_trace.jsonl."""
    content: dict[str, Any] = {
        "trace_id": answer.trace_id or answer.case_id,
        "iteration": answer.order,
        "persona": answer.persona,
        "success": answer.success,
        "duration_ms": answer.duration_ms,
        "scores": dict(answer.scores),
        "final_score": answer.final_score,
        "pass": answer.passed,
        "reasons": dict(answer.reasons),
        "meta": {"case_id": answer.case_id, "name": answer.name},
    }
    if answer.absent:
        content["absent"] = dict(answer.absent)
    if answer.tokens is not None:
        content["total_tokens"] = answer.tokens
    return content
