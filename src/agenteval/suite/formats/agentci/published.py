"""The JSON Schema of the files in ``.agentci/evals``, for editors."""

from __future__ import annotations

from pydantic import Field

from agenteval.suite.formats.agentci import schema
from agenteval.suite.formats.json_schema import Node, with_variables


class _AgentciCase(schema.CaseEntry):
    output: str | schema.OutputEntry | None = None


class _AgentciEval(schema.EvalEntry):
    cases: list[_AgentciCase] = Field(default_factory=list)


class _AgentciFile(schema.EvalFile):
    eval: _AgentciEval


def published() -> Node:
    """Return the schema of a file."""
    return with_variables(_AgentciFile.model_json_schema())
