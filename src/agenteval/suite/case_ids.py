"""Ids, names and tags of cases that their suite does not name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

#: What the tag of a persona starts with.
PERSONA_TAG = "persona:"

_NAME_LENGTH = 60
_DIGITS = 12


def content_id(asked: Any) -> str:
    """Return a short hash of what a case asks, as JSON: the same on every machine."""
    return _digest(json.dumps(asked, sort_keys=True, ensure_ascii=False, default=str))


def turns_id(inputs: Sequence[str]) -> str:
    """Return the id of a HoloDeck case without a name, from the inputs of its turns."""
    return _digest("\x1f".join(inputs))


def persona_tag(persona: str) -> str:
    """Return the tag of the cases that a persona asks."""
    return f"{PERSONA_TAG}{persona}"


def excerpt(text: str) -> str:
    """Return a text as a name: one line, cut if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _NAME_LENGTH else line[: _NAME_LENGTH - 1] + "…"


def _digest(text: str) -> str:
    return f"#{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGITS]}"
