"""Masks secrets in results before anything is written."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel

from agenteval.core.text.redact import Redactor
from agenteval.results.case import CaseResult, IterationResult, Score, ToolCall, Usage

ResultT = TypeVar("ResultT", CaseResult, IterationResult)

# Fields with any value, which the agent or a grader chooses.
_ANY = frozenset({"args", "result", "details"})


def redacted(result: ResultT, redact: Redactor) -> tuple[ResultT, str]:
    """Return the result with masked secrets, and the same result as JSON."""
    text = result.model_dump_json()
    if not redact.finds(text):
        return result, text
    masked: ResultT = _masked(result, redact)
    return masked, masked.model_dump_json()


def _masked(value: Any, redact: Redactor) -> Any:
    """Mask the texts inside result models, and the numbers that the agent chooses."""
    if isinstance(value, BaseModel):
        update = {name: _field(value, name, item, redact) for name, item in value}
        return value.model_copy(update=update)
    if isinstance(value, list):
        return [_masked(item, redact) for item in value]
    return redact(value) if isinstance(value, str) else value


def _field(model: BaseModel, name: str, value: Any, redact: Redactor) -> Any:
    if name in _fixed(type(model)):
        return value
    if name in _ANY:
        return redact.data(value)
    if isinstance(model, (Usage, ToolCall)) and type(value) in {int, float} and redact.number(value) != value:
        # These fields are numbers, and may be unknown.
        return None
    return _masked(value, redact)


@cache
def _fixed(model: type[BaseModel]) -> frozenset[str]:
    """The fields with words of agenteval, and the ids of metrics: suites are refused if these contain a secret."""
    words = {name for name, field in model.model_fields.items() if _is_literal(field.annotation)}
    return frozenset(words | {"id"} if model is Score else words)


def _is_literal(hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return True
    parts = [part for part in get_args(hint) if part is not type(None)]
    return bool(parts) and all(map(_is_literal, parts))
