"""Takes secrets out of results before they are written anywhere."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agenteval.report.escape import Redactor
from agenteval.results.model import CaseResult

_NEVER_MASKED = frozenset({"id", "kind", "status"})


def redacted(result: CaseResult, redact: Redactor) -> CaseResult:
    """The result without secrets that an agent or a metric repeated."""
    text = result.model_dump_json()
    return result if redact(text) == text else _masked(result, redact)


def _masked(value: Any, redact: Redactor) -> Any:
    """Masks the texts inside our models; what identifies and classifies stays, as it is matched later."""
    if isinstance(value, BaseModel):
        masked = {name: _masked(item, redact) for name, item in value if name not in _NEVER_MASKED}
        return value.model_copy(update=masked)
    if isinstance(value, list):
        return [_masked(item, redact) for item in value]
    return redact.data(value)
