"""Writes a field specification as JSON Schema, for judges that are to follow it."""

from __future__ import annotations

from typing import Any

from agenteval.metrics.schema import enum_names_lists
from agenteval.suite.output_schema import FieldSpec, FieldType

_NAMES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "dict": "object"}
_ANY = FieldType("any")


def json_schema_of(spec: FieldSpec) -> dict[str, Any]:
    """The JSON Schema that a specification means; text matches have no form there and are left out."""
    kinds = [_type_schema(kind, spec) for kind in spec.types or (_ANY,)]
    schema = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    counts = {"minItems": spec.min_items, "maxItems": spec.max_items}
    items = {"items": json_schema_of(spec.items)} if spec.items is not None else {}
    enum = {"enum": list(spec.enum)} if spec.enum is not None and enum_names_lists(spec.enum) else {}
    return _both(schema, {**_given(counts), **items, **enum})


def _type_schema(kind: FieldType, spec: FieldSpec) -> dict[str, Any]:
    """One type, with the limits on it, or on what stands inside its lists."""
    if kind.name in {"list", "set"}:
        unique = {"uniqueItems": True} if kind.name == "set" else {}
        inner = _type_schema(kind.item or _ANY, spec)
        return {"type": "array", **({"items": inner} if inner else {}), **unique}
    schema: dict[str, Any] = {"type": _NAMES[kind.name]} if kind != _ANY else {}
    if kind.name in {"str", "any"}:
        schema |= _given({"minLength": spec.min_length, "maxLength": spec.max_length})
    if kind.name in {"int", "float", "any"}:
        schema |= _given({"minimum": spec.min, "maximum": spec.max})
    if spec.enum is not None and not enum_names_lists(spec.enum):
        schema["enum"] = list(spec.enum)
    if kind.name == "dict" and spec.fields is not None:
        schema["properties"] = {name: json_schema_of(field) for name, field in spec.fields.items()}
        schema["required"] = [name for name, field in spec.fields.items() if field.required]
    return schema


def _given(keywords: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in keywords.items() if value is not None}


def _both(schema: dict[str, Any], further: dict[str, Any]) -> dict[str, Any]:
    """A schema with further keywords; those that it has itself hold beside them."""
    return {**schema, **further} if schema.keys().isdisjoint(further) else {"allOf": [schema, further]}
