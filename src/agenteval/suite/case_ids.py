"""Names of cases that have none in their suite."""

from __future__ import annotations

import hashlib
import json
from typing import Any

_NAME_LENGTH = 60


def content_id(asked: Any) -> str:
    """Return a short hash of a question as JSON; the same on every machine."""
    text = json.dumps(asked, sort_keys=True, ensure_ascii=False, default=str)
    return f"#{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def excerpt(text: str) -> str:
    """Return a text as a name: one line, cut if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _NAME_LENGTH else line[: _NAME_LENGTH - 1] + "…"
