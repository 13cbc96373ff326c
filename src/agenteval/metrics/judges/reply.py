"""Reads a judge's reply, and rejects unusable replies."""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from agenteval.metrics.base import MetricError

Reply = TypeVar("Reply", bound=BaseModel)

HIGHEST_SCORE = 10

_TRAILING_COMMA = re.compile(r",\s*([\]}])")
_SHOWN = 200


def read_reply(text: str, schema: type[Reply]) -> Reply:
    """Return a reply as an instance of its schema.

    Raises:
        MetricError: the reply is not JSON, or does not follow the schema.
    """
    value = json_object(text)
    if isinstance(value.get("score"), bool):
        raise MetricError(f"the judge's score is {value['score']}, not a number")
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"])
        raise MetricError(f"the judge's reply does not fit {schema.__name__}: {place}: {first['msg']}") from None


def json_object(text: str) -> dict[str, Any]:
    """Return the JSON object in a reply; fences and prose around it are ignored.

    Raises:
        MetricError: there is none.
    """
    start, end = text.find("{"), text.rfind("}")
    inner = text[start : end + 1] if start != -1 and end > start else ""
    # Some models write a comma before a closing bracket. Tried last, as a text may contain one, too.
    for candidate in (inner, _TRAILING_COMMA.sub(r"\1", inner)):
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    shown = " ".join(text.split())
    raise MetricError(f"the judge's reply is not JSON: {shown[:_SHOWN]!r}")


def check_scale(score: float, *, strict: bool) -> None:
    """Reject a score outside the judge's scale: 0 to 10, or 0 and 1 if strict.

    Raises:
        MetricError: the score is outside the scale, or not a number.
    """
    if strict and score not in {0, 1}:
        raise MetricError(f"the judge's score is {score:g}, but only 0 and 1 are allowed")
    if not 0 <= score <= HIGHEST_SCORE:
        raise MetricError(f"the judge's score is {score:g}, outside its scale of 0 to {HIGHEST_SCORE}")


def may_be_score(token: str) -> bool:
    """Return whether a token may be a score; tokens that are not numbers pass."""
    # Not as an int: Python refuses to read thousands of digits.
    return not token.isdecimal() or float(token) <= HIGHEST_SCORE
