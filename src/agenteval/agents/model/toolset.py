"""Offers tools to pydantic-ai, and records every call."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from agenteval.agents.model.tools import Tool, passages
from agenteval.core.errors import AgentError
from agenteval.results.case import ToolCall

# Retries of the model after arguments that are not a JSON object.
_RETRIES = 2
_ARGUMENTS = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))


class Toolset(AbstractToolset[object]):
    """The tools of one conversation.

    Args:
        tools: by the name shown to the model.
    """

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self._tools = tools
        self._calls: list[ToolCall] = []
        self._passages: list[tuple[str, ...]] = []

    @property
    def id(self) -> str:
        """The identifier for the library."""
        return "tools"

    def begin_turn(self) -> None:
        """Clear the calls of the previous turn."""
        self._calls, self._passages = [], []

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Return every call of this turn in order of start."""
        return tuple(self._calls)

    @property
    def retrieved(self) -> tuple[str, ...]:
        """Return the passages that retrieval tools returned in this turn."""
        return tuple(passage for found in self._passages for passage in found)

    async def get_tools(self, ctx: RunContext[object]) -> dict[str, ToolsetTool[object]]:  # noqa: ARG002
        """Return the tools in the library's form."""
        return {name: self._described(name, tool) for name, tool in self._tools.items()}

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[object],  # noqa: ARG002 - the library's signature
        tool: ToolsetTool[object],  # noqa: ARG002
    ) -> Any:
        """Call a tool; an error is returned to the model, which may continue."""
        place = len(self._calls)
        call = ToolCall(name=name, args=tool_args)
        self._calls.append(call)
        self._passages.append(())
        asked = self._tools[name]
        started = time.perf_counter()

        def record(**outcome: Any) -> ToolCall:
            elapsed_ms = round((time.perf_counter() - started) * 1000, 3)
            # Converted through JSON, so that a file and the model can represent the result.
            self._calls[place] = ToolCall(name=name, args=tool_args, duration_ms=elapsed_ms, **outcome)
            return self._calls[place]

        try:
            result = await asked.call(tool_args)
        except AgentError as error:
            raise ToolFailed(record(error=str(error)).error or "") from None
        kept = record(result=result).result
        if asked.is_retrieval:
            self._passages[place] = passages(kept)
        return kept

    def _described(self, name: str, tool: Tool) -> ToolsetTool[object]:
        definition = ToolDefinition(name=name, description=tool.description, parameters_json_schema=dict(tool.schema))
        return ToolsetTool(toolset=self, tool_def=definition, max_retries=_RETRIES, args_validator=_ARGUMENTS)


def by_name(offered: Iterable[tuple[str, Iterable[Tool]]]) -> dict[str, Tool]:
    """Return all tools by unique names; a name that is taken is prefixed with its source.

    Args:
        offered: tools by their source.
    """
    named: dict[str, Tool] = {}
    for source, tools in offered:
        for tool in tools:
            name = tool.name if tool.name not in named else f"{source}_{tool.name}"
            named[name] = replace(tool, name=name)
    return named
