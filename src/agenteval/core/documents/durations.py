"""Durations in files and options: a number of seconds, or a text with a unit."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_PATTERN = r"\d+(\.\d+)? ?(ms|s|m|min|h)?"
_TEXT = re.compile(rf"(?P<number>\d+(?:\.\d+)?) ?(?P<unit>{'|'.join(_UNITS)})")


def seconds(value: Any) -> Any:
    """Return a duration in seconds; values other than text are returned unchanged.

    Raises:
        ValueError: a text is not a number with a known unit.
    """
    if not isinstance(value, str):
        return value
    match = _TEXT.fullmatch(value.strip())
    if match is not None:
        return float(match["number"]) * _UNITS[match["unit"]]
    try:
        return float(value)
    except ValueError:
        example = "write seconds as a number, or a unit as in 500ms, 2s, 5m or 1h"
        raise ValueError(f"{value!r} is not a duration; {example}") from None


#: The type of a key that takes a duration above 0.
Duration = Annotated[
    float,
    BeforeValidator(seconds),
    Field(gt=0),
    WithJsonSchema(
        {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "pattern": f"^{_PATTERN}$"}]}
    ),
]
