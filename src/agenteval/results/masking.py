"""Masks secrets in results before anything is written."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel

from agenteval.core.text.redact import Redactor
from agenteval.results.model import CaseResult, IterationResult

ResultT = TypeVar("ResultT", CaseResult, IterationResult)

_NEVER_MASKED = frozenset({"id", "kind", "status"})


def redacted(result: ResultT, redact: Redactor) -> tuple[ResultT, str]:
    """Return the result with masked secrets, and the same result as JSON."""
    text = result.model_dump_json()
    if redact(text) == text:
        return result, text
    masked: ResultT = _masked(result, redact)
    return masked, masked.model_dump_json()


def _masked(value: Any, redact: Redactor) -> Any:
    """Mask the texts inside result models. Ids and enumerations stay, because they are matched later."""
    if isinstance(value, BaseModel):
        masked = {name: _masked(item, redact) for name, item in value if name not in _NEVER_MASKED}
        return value.model_copy(update=masked)
    if isinstance(value, list):
        return [_masked(item, redact) for item in value]
    return redact.data(value)
