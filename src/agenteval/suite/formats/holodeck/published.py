"""The JSON Schema of ``agent.yaml``, for editors."""

from __future__ import annotations

from pydantic import Field

from agenteval.suite.formats.holodeck.schema import CaseEntry
from agenteval.suite.formats.holodeck.tools_schema import AgentFileWithTools
from agenteval.suite.formats.json_schema import (
    AgentKey,
    Node,
    each_property,
    or_scalar,
    with_variables,
)

# Texts that may be written as YAML numbers and booleans.
_TEXTS = frozenset({"name", "input", "ground_truth"})
_AGENT = "agenteval, deprecated: HoloDeck refuses this key; name the agent in agenteval.yaml"
_BARE_TEXTS = ("ExpectedTool", "Instructions")


class _HolodeckFile(AgentFileWithTools):
    agent: AgentKey | None = Field(None, description=_AGENT)
    test_cases: list[CaseEntry] | None = None


def published() -> Node:
    """Return the schema of a file."""
    body = with_variables(_HolodeckFile.model_json_schema())
    for name in _BARE_TEXTS:
        body["$defs"][name] = {"anyOf": [{"type": "string"}, body["$defs"][name]]}
    return each_property(body, lambda key, value: or_scalar(value) if key in _TEXTS else value)
