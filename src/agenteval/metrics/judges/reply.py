"""Reads a judge's reply, and rejects unusable replies."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from agenteval.core.masking import shortened
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
    return fitted(json_object(text), schema)


def fitted(value: dict[str, Any], schema: type[Reply]) -> Reply:
    """Return the JSON of a reply as an instance of its schema.

    Raises:
        MetricError: it does not follow the schema.
    """
    if isinstance(value.get("score"), bool):
        raise MetricError(f"the judge's score is {value['score']}, not a number")
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"])
        raise MetricError(f"the judge's reply does not fit {schema.__name__}: {place}: {first['msg']}") from None


def json_object(text: str) -> dict[str, Any]:
    """Return the JSON object in a reply; code fences and text around it are ignored.

    Raises:
        MetricError: the reply contains no JSON object, or an object with two values of one key.
    """
    start, end = text.find("{"), text.rfind("}")
    inner = text[start : end + 1] if start != -1 and end > start else ""
    # Some models write a comma before a closing bracket. Tried last, because a text may contain one as well.
    for candidate in (inner, _TRAILING_COMMA.sub(r"\1", inner)):
        try:
            value = json.loads(candidate, object_pairs_hook=_with_one_value)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    raise MetricError(f"the judge's reply is not JSON: {shortened(text, _SHOWN)!r}")


def _with_one_value(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; with two scores, it is unknown which one the judge means."""
    made = dict(pairs)
    if len(made) < len(pairs):
        for key, value in pairs:
            if made[key] != value:
                raise MetricError(f"the judge's reply has two values of {shortened(key, _SHOWN)!r}")
    return made


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
    # As a float: Python refuses to parse integers with thousands of digits.
    return not token.isdecimal() or float(token) <= HIGHEST_SCORE
