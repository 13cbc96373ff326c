"""A value as text."""

from __future__ import annotations

import json
from typing import Any


def text_of(value: Any) -> str:
    """A value as text: texts as they are, nothing for ``None``, JSON for the rest."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
