"""The keys of ``agenteval.yaml`` in words, from its JSON Schema: for the documentation and ``agenteval explain``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from agenteval.cli.schema import schema


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One key of a mapping.

    Attributes:
        values: the values that it takes, in Markdown.
        default: as in YAML; empty for none.
        meaning: in Markdown.
    """

    name: str
    values: str
    default: str
    meaning: str


@dataclass(frozen=True, slots=True)
class ConfigMapping:
    """A mapping of the file.

    Attributes:
        places: where it can be, such as ``agents.NAME``; the whole file has an empty place.
        meaning: in Markdown.
    """

    places: tuple[str, ...]
    meaning: str
    keys: tuple[ConfigKey, ...]


@cache
def config_mappings() -> list[ConfigMapping]:
    """Return all mappings of ``agenteval.yaml``, the whole file first."""
    root = schema("config")
    places: dict[str, list[str]] = {}
    for place, name in _nested(root, root, ""):
        places.setdefault(name, []).append(place)
    named = ((tuple(dict.fromkeys(where)), root["$defs"][name]) for name, where in places.items())
    return [_mapping(where, model, root) for where, model in ((("",), root), *named)]


def _mapping(places: tuple[str, ...], model: Mapping[str, Any], root: Mapping[str, Any]) -> ConfigMapping:
    return ConfigMapping(places, _says(model), tuple(_keys(model, root)))


def _keys(model: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[ConfigKey]:
    for name, value in model["properties"].items():
        default = value.get("default")
        shown = "" if default in (None, "", []) or isinstance(default, dict) else _yaml(default)
        yield ConfigKey(name, _type(value, root), shown, _says(value, root))


def _yaml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace('"', "") if not isinstance(value, str) else value


def _says(value: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> str:
    """Return the description of a schema, or of the schema that it refers to."""
    text = str(value.get("description", ""))
    if not text and root is not None and "$ref" in value:
        text = str(root["$defs"][_name(value)].get("description", ""))
    # The first paragraph of a docstring has doubled code markers and begins with the key.
    first = " ".join(text.partition("\n\n")[0].replace("``", "`").split())
    return re.sub(r"^`\w+:` - (\w)", lambda match: match[1].upper(), first)


def _type(value: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    if alternatives := _alternatives(value):
        return " or ".join(dict.fromkeys(filter(None, (_type(member, root) for member in alternatives))))
    if "$ref" in value:
        return "mapping"
    if "enum" in value:
        return " | ".join(f"`{_yaml(item)}`" for item in value["enum"])
    kind = value.get("type")
    if kind == "array":
        inner = _type(value["items"], root) if value.get("items") else ""
        return f"list of {inner}" if inner else "list"
    if kind == "object":
        return "mapping"
    if isinstance(kind, list):
        return "list or text"
    names = {"string": "text", "integer": "whole number", "boolean": "true or false", "null": "", "number": "number"}
    return names.get(str(kind), "") + _limits(value)


def _limits(value: Mapping[str, Any]) -> str:
    signs = (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"), ("exclusiveMaximum", "<"))
    limits = [f"{sign} {value[key]:g}" for key, sign in signs if key in value]
    return f" {', '.join(limits)}" if limits else ""


def _nested(model: Mapping[str, Any], root: Mapping[str, Any], at: str) -> Iterator[tuple[str, str]]:
    """Yield every mapping below a mapping: its place, and its name among the schema's definitions."""
    for key, value in model.get("properties", {}).items():
        for suffix, member in _members(value):
            name = _name(member)
            place = f"{at}{key}{suffix}"
            yield place, name
            yield from _nested(root["$defs"][name], root, f"{place}.")


def _members(value: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if "$ref" in value:
        yield "", value
    for member in _alternatives(value):
        yield from _members(member)
    for key, suffix in (("items", "[]"), ("additionalProperties", ".NAME")):
        if isinstance(value.get(key), dict):
            for inner, member in _members(value[key]):
                yield f"{suffix}{inner}", member


def _alternatives(value: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = value.get("anyOf") or value.get("oneOf") or ()
    return found


def _name(value: Mapping[str, Any]) -> str:
    return str(value["$ref"]).rpartition("/")[2]
