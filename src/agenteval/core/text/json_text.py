"""A value as text."""

from __future__ import annotations

import json
from typing import Any


def text_of(value: Any) -> str:
    """Return a value as text: texts unchanged, ``None`` as an empty text, other values as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
