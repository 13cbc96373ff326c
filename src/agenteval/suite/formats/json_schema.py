"""Changes to the JSON Schemas of suite files that several formats share.

The loaders read their files in pieces, so that one error hides no other, and accept some values in several spellings.
The schemas are for editors: each format combines its pieces and adds the spellings. They omit errors that only a
loader can detect (repeated names, invalid patterns).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from agenteval.suite.agents import AgentEntry

# The allowed values of the key ``agent`` of a suite.
AgentKey = AgentEntry | list[str] | str
AGENT_DESCRIPTION = "agenteval: how the agent under test is reached"

_VARIABLE = {"type": "string", "pattern": r"\$\{"}
_NUMBERS = frozenset({"number", "integer", "boolean"})

Node = dict[str, Any]


def with_variables(schema: Node) -> Node:
    """Return the schema with ``${VARIABLE}`` allowed in place of every number, choice and boolean."""
    if schema.get("type") in _NUMBERS or "enum" in schema:
        return or_else(schema, _VARIABLE)
    return _below(schema, with_variables)


def each_property(schema: Node, change: Callable[[str, Node], Node]) -> Node:
    """Return the schema with each property of each object replaced by a function's result."""
    changed = _below(schema, lambda part: each_property(part, change))
    if "properties" in changed:
        changed["properties"] = {key: change(key, value) for key, value in changed["properties"].items()}
    return changed


def _below(schema: Node, change: Callable[[Node], Node]) -> Node:
    """Return a copy of a schema, with its direct subschemas replaced by a function's results."""
    copy = dict(schema)
    for key in ("properties", "$defs"):
        if key in copy:
            copy[key] = {name: change(part) for name, part in copy[key].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(copy.get(key), dict):
            copy[key] = change(copy[key])
    for key in ("anyOf", "oneOf", "allOf"):
        if key in copy:
            copy[key] = [change(part) for part in copy[key]]
    return copy


def or_scalar(value: Node) -> Node:
    """Allow a number or boolean besides a schema: a text that YAML parsed as one."""
    return or_else(value, {"type": ["number", "boolean"]})


def or_else(
    value: Node, other: Mapping[str, Any], outside: Collection[str] = ("description", "default", "title")
) -> Node:
    """Allow the values of either schema; annotations of the first apply to both."""
    said = {key: value[key] for key in outside if key in value}
    inner = {key: item for key, item in value.items() if key not in said}
    members = inner["anyOf"] if set(inner) == {"anyOf"} else [inner]
    return {**said, "anyOf": [*members, dict(other)]}
