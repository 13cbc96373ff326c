"""What cases are called that their suite gives no name."""

from __future__ import annotations

import hashlib
import json
from typing import Any

_NAME_LENGTH = 60


def content_id(asked: Any) -> str:
    """A short hash of what is asked, as JSON: the same on every machine."""
    text = json.dumps(asked, sort_keys=True, ensure_ascii=False, default=str)
    return f"#{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def excerpt(text: str) -> str:
    """A text as a name: one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _NAME_LENGTH else line[: _NAME_LENGTH - 1] + "…"
