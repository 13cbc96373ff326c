"""Changes to the JSON Schemas of suite files that several formats share.

The loaders read their files in pieces, so that one mistake hides no other, and take some values in several spellings.
The schemas are for editors: each format puts its pieces together and adds the spellings. What only a loader can see
(that a name is given twice, that a pattern is none) is not said.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from agenteval.suite.agents import AgentEntry

# What the key ``agent`` of a suite may hold.
AgentKey = AgentEntry | list[str] | str
AGENT_DESCRIPTION = "agenteval: how the agent under test is reached"

_VARIABLE = {"type": "string", "pattern": r"\$\{"}
_NUMBERS = frozenset({"number", "integer", "boolean"})

Node = dict[str, Any]


def with_variables(schema: Node) -> Node:
    """The same schema, in which ``${VARIABLE}`` may stand for every number, word of a choice, and boolean."""
    if schema.get("type") in _NUMBERS or "enum" in schema:
        return or_else(schema, _VARIABLE)
    return _below(schema, with_variables)


def each_property(schema: Node, change: Callable[[str, Node], Node]) -> Node:
    """The same schema with each property of each object replaced by what a function makes of it."""
    changed = _below(schema, lambda part: each_property(part, change))
    if "properties" in changed:
        changed["properties"] = {key: change(key, value) for key, value in changed["properties"].items()}
    return changed


def _below(schema: Node, change: Callable[[Node], Node]) -> Node:
    """A copy of a schema, with the schemas right below it replaced by what a function makes of them."""
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
    """What a schema allows, or a number or boolean: a text that YAML took for one."""
    return or_else(value, {"type": ["number", "boolean"]})


def or_else(
    value: Node, other: Mapping[str, Any], outside: Collection[str] = ("description", "default", "title")
) -> Node:
    """What either schema allows; what is said about the first is said about both."""
    said = {key: value[key] for key in outside if key in value}
    inner = {key: item for key, item in value.items() if key not in said}
    members = inner["anyOf"] if set(inner) == {"anyOf"} else [inner]
    return {**said, "anyOf": [*members, dict(other)]}
