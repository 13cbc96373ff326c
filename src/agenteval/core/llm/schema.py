"""JSON Schemas for providers' structured outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# The keys of these objects are names that the schema's author chose, so they can be "default" or "type".
_NAMES = frozenset({"properties", "$defs", "definitions"})


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy in which every object requires all its properties and forbids others."""
    strict: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _NAMES and isinstance(value, Mapping):
            strict[key] = {name: _strict(item) for name, item in value.items()}
        elif key != "default":
            strict[key] = _strict(value)
    if strict.get("type") == "object" and isinstance(strict.get("properties"), Mapping):
        strict |= {"additionalProperties": False, "required": list(strict["properties"])}
    return strict


def _strict(value: Any) -> Any:
    if isinstance(value, Mapping):
        return strict_schema(value)
    return [_strict(item) for item in value] if isinstance(value, list) else value
