"""JSON Schemas the way providers' structured outputs want them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy in which every object forbids further keys and requires all of its own."""
    return {key: _strict(value) for key, value in _closed(schema).items()}


def _strict(value: Any) -> Any:
    if isinstance(value, Mapping):
        return strict_schema(value)
    return [_strict(item) for item in value] if isinstance(value, list) else value


def _closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    copied = {key: value for key, value in schema.items() if key != "default"}
    if copied.get("type") == "object" and isinstance(copied.get("properties"), Mapping):
        copied |= {"additionalProperties": False, "required": list(copied["properties"])}
    return copied
