"""The tools of a model agent, as pydantic-ai gets them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from agenteval.agents.worker.pool import WorkerPool
from agenteval.core.errors import AgentError, AgentImportError, ConfigError, Kind, UserCodeError, agent_problem
from agenteval.core.llm.calls import Call
from agenteval.core.llm.gateway import Gateway
from agenteval.core.records import dataclass, replace
from agenteval.results.case import ToolCall
from agenteval.suite.model_tools import FunctionTool, PromptTool

_DESCRIBE = "agenteval.agents.worker.metrics:describe"
_CALL = "agenteval.agents.worker.metrics:call"
_PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")


@dataclass(frozen=True)
class ModelTool:
    """A tool as the model sees it.

    Attributes:
        call: takes the arguments, returns JSON; raises ``AgentError`` with the message for the model.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    is_retrieval: bool
    call: Callable[[Mapping[str, Any]], Awaitable[Any]]


async def function_tool(spec: FunctionTool, workers: WorkerPool) -> ModelTool:
    """Make a tool from a user function; import it once to check that it exists.

    Raises:
        ConfigError: it does not exist, or cannot be a tool.
        UserCodeError: the import of its file fails.
    """
    try:
        signature = await workers.call(_DESCRIBE, [spec.file, spec.function])
    except AgentError as error:
        failure = UserCodeError if isinstance(error, AgentImportError) else ConfigError
        raise failure(
            agent_problem(spec.where, f"the tool {spec.name!r} cannot be used: {error}", Kind.USER_CODE)
        ) from None

    async def call(arguments: Mapping[str, Any]) -> Any:
        return await workers.call(_CALL, [spec.file, spec.function, dict(arguments)])

    schema = signature if spec.parameters is None else parameters_schema(spec.parameters)
    return ModelTool(spec.name, spec.description, schema, spec.is_retrieval, call)


def prompt_tool(spec: PromptTool, gateway: Gateway, sample: int) -> ModelTool:
    """Make a tool from a prompt that a model answers."""

    async def call(arguments: Mapping[str, Any]) -> Any:
        completion = await gateway.complete(
            Call(spec.model, filled(spec.template, arguments), sample=sample, by_agent=True)
        )
        return completion.text

    return ModelTool(spec.name, spec.description, parameters_schema(spec.parameters), is_retrieval=False, call=call)


def filled(template: str, arguments: Mapping[str, Any]) -> str:
    """Return the template with its arguments; a placeholder without argument becomes empty."""

    def value(match: re.Match[str]) -> str:
        argument = arguments.get(match[1], "")
        return argument if isinstance(argument, str) else json.dumps(argument, ensure_ascii=False)

    return _PLACEHOLDER.sub(value, template)


def parameters_schema(parameters: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the JSON Schema of an object with these parameters.

    Each is required, unless it has a ``default`` or ``required: false``.
    """
    properties = {
        name: {key: value for key, value in schema.items() if not (key == "required" and isinstance(value, bool))}
        for name, schema in parameters.items()
    }
    required = [name for name, schema in parameters.items() if schema.get("required", "default" not in schema)]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def passages(result: Any) -> tuple[str, ...]:
    """Return a retrieval result as passages: one for a text or an object, one per item of a list."""
    items = result if isinstance(result, list) else [result]
    texts = (item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in items if item)
    return tuple(text for text in texts if text.strip())


# Retries of the model after arguments that are not a JSON object.
_RETRIES = 2
_ARGUMENTS = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))


class Toolset(AbstractToolset[object]):
    """The tools of one conversation.

    Args:
        tools: by the name shown to the model.
    """

    def __init__(self, tools: Mapping[str, ModelTool]) -> None:
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

    def _described(self, name: str, tool: ModelTool) -> ToolsetTool[object]:
        definition = ToolDefinition(name=name, description=tool.description, parameters_json_schema=dict(tool.schema))
        return ToolsetTool(toolset=self, tool_def=definition, max_retries=_RETRIES, args_validator=_ARGUMENTS)


def by_name(offered: Iterable[tuple[str, Iterable[ModelTool]]]) -> dict[str, ModelTool]:
    """Return all tools by unique names; a name that is taken is prefixed with its source."""
    named: dict[str, ModelTool] = {}
    for source, tools in offered:
        for tool in tools:
            name = tool.name if tool.name not in named else f"{source}_{tool.name}"
            named[name] = replace(tool, name=name)
    return named
