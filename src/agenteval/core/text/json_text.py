"""Converts JSON values to text, and finds the JSON in a text."""

from __future__ import annotations

import json
import re
from typing import Any

_FENCE = re.compile(r"```[\w-]*\s*")


def text_of(value: Any) -> str:
    """Return a value as text: texts unchanged, ``None`` as an empty text, other values as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def unfenced(text: str) -> str:
    """Return the content of the code fence (```) around a whole text; without a fence the text itself."""
    # Not a regular expression: its search for the end would take quadratic time.
    first, _, rest = text.strip().partition("\n")
    return rest[:-3].strip() if _FENCE.fullmatch(first) and rest.endswith("```") else text
