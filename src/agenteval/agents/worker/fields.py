"""Reads fields of objects and mappings alike, whatever framework they are of.

This file runs in the worker process under the user's Python (3.8 or newer) and needs nothing but the
standard library.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# What messages of a model say they are.
SPEAKERS = frozenset({"ai", "assistant", "AIMessageChunk"})


def kind_of(message: Any) -> Any:
    """What a message says it is: LangChain's ``type``, everyone else's ``role``."""
    found = first(message, ("type", "role"))
    # Roles may be members of an enumeration.
    found = getattr(found, "value", found)
    return found if isinstance(found, str) else None


def get(item: Any, name: str) -> Any:
    """The field of an object or mapping; ``None`` if it has none."""
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)


def has(item: Any, name: str) -> bool:
    """Whether there is a value; a method is none."""
    value = get(item, name)
    return value is not None and not callable(value)


def as_list(item: Any, name: str) -> Sequence[Any]:
    """The field, if it is a list."""
    value = get(item, name)
    return value if isinstance(value, (list, tuple)) else ()


def first(item: Any, names: Iterable[str]) -> Any:
    """The first of several fields that is there."""
    return next((get(item, name) for name in names if has(item, name)), None)


def plain(value: Any) -> Any:
    """A value as JSON; what JSON does not know becomes the nearest it does, at last text."""
    try:
        return json.loads(json.dumps(value, default=_simpler, skipkeys=True))
    except (ValueError, TypeError, RecursionError):
        return str(value)


def fields_of(value: Any) -> Any:
    """What an object with declared fields holds; ``None`` for any other."""
    if isinstance(value, type):
        return None
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None


def _simpler(value: Any) -> Any:
    """For what JSON does not know."""
    fields = fields_of(value)
    if fields is not None:
        return fields
    return list(value) if isinstance(value, (set, frozenset)) else str(value)
