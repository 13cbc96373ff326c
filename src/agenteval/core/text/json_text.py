"""Converts JSON values to text, and finds the JSON in a text."""

from __future__ import annotations

import json
import re
from typing import Any

_FENCE = re.compile(r"```[\w-]*\s*")
_START = re.compile(r"[{\[]")
# Each attempt may read the rest of the text.
_MOST_STARTS = 200


def text_of(value: Any) -> str:
    """Return a value as text: texts unchanged, ``None`` as an empty text, other values as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def json_in(text: str) -> Any:
    """Return the JSON value that is a text, or the longest object or list inside it, for instance in a code fence.

    Raises:
        ValueError, RecursionError: the text contains no JSON; the message is the one of the whole text.
    """
    try:
        return json.loads(unfenced(text))
    except ValueError:
        found = _longest_value(text)
        if found is None:
            raise
        return found


def _longest_value(text: str) -> Any:
    decoder = json.JSONDecoder()
    longest, found = 0, None
    start = _start_of_value(text, 0)
    for _ in range(_MOST_STARTS):
        if start is None:
            break
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            start = _start_of_value(text, start + 1)
            continue
        if end - start > longest:
            longest, found = end - start, value
        start = _start_of_value(text, end)
    return found


def _start_of_value(text: str, place: int) -> int | None:
    match = _START.search(text, place)
    return None if match is None else match.start()


def unfenced(text: str) -> str:
    """Return the content of the code fence (```) around a whole text; without a fence the text itself."""
    # Not a regular expression: its search for the end would take quadratic time.
    first, _, rest = text.strip().partition("\n")
    return rest[:-3].strip() if _FENCE.fullmatch(first) and rest.endswith("```") else text
