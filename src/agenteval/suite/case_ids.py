"""Ids, names and tags of cases that their suite does not name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from agenteval.core.masking import mask

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


def asked_by(name: str, persona: str | None) -> str:
    """Return the name of a case that a persona asks; a name that ends with the persona stays as it is."""
    suffix = f" [{persona}]"
    return name if not persona or name.endswith(suffix) else name + suffix


class DistinctNames:
    """Makes names distinguishable: a second ``name`` becomes ``name (2)``."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def distinct(self, name: str) -> str:
        """Return the name, with a number if it was given before."""
        number = self._seen[name] = self._seen.get(name, 0) + 1
        return name if number == 1 else f"{name} ({number})"


def excerpt(text: str) -> str:
    """Return a text as a name: one line, cut if it is long, with masked secrets: half a secret is not recognised."""
    line = " ".join(text.split())
    return line if len(line) <= _NAME_LENGTH else mask(line)[: _NAME_LENGTH - 1] + "…"


def _digest(text: str) -> str:
    return f"#{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGITS]}"
