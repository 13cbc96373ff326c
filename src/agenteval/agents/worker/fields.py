"""Reads fields of objects and mappings of any framework.

This file runs in the worker process under the user's Python (3.8 or newer) and needs only the
standard library.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# The types and roles of a model's messages.
SPEAKERS = frozenset({"ai", "assistant", "AIMessageChunk"})


def kind_of(message: Any) -> Any:
    """Return the kind of a message: LangChain's ``type``, other frameworks' ``role``."""
    found = first(message, ("type", "role"))
    # A role may be an enum member.
    found = getattr(found, "value", found)
    return found if isinstance(found, str) else None


def get(item: Any, name: str) -> Any:
    """Return the field of an object or mapping; ``None`` if it is missing."""
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)


def has(item: Any, name: str) -> bool:
    """Return whether a field has a value that is not a method."""
    value = get(item, name)
    return value is not None and not callable(value)


def as_list(item: Any, name: str) -> Sequence[Any]:
    """Return the field if it is a list, else an empty list."""
    value = get(item, name)
    return value if isinstance(value, (list, tuple)) else ()


def first(item: Any, names: Iterable[str]) -> Any:
    """Return the first of several fields that has a value."""
    return next((get(item, name) for name in names if has(item, name)), None)


def plain(value: Any) -> Any:
    """Return a value as JSON; other types become the closest JSON type, as a last resort text."""
    try:
        return json.loads(json.dumps(value, default=_simpler, skipkeys=True))
    except (ValueError, TypeError, RecursionError):
        return str(value)


def fields_of(value: Any) -> Any:
    """Return the fields of an object with declared fields; ``None`` for any other."""
    if isinstance(value, type):
        return None
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None


def _simpler(value: Any) -> Any:
    """Convert a value that JSON cannot represent."""
    fields = fields_of(value)
    if fields is not None:
        return fields
    return list(value) if isinstance(value, (set, frozenset)) else str(value)
