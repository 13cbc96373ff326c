"""The tools of a model agent."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agenteval.agents.worker.pool import WorkerPool
from agenteval.core.errors import AgentError, AgentImportError, ConfigError, Kind, UserCodeError, agent_problem
from agenteval.core.llm.calls import Call
from agenteval.core.llm.gateway import Gateway
from agenteval.suite.model_tools import FunctionTool, PromptTool

_DESCRIBE = "agenteval.agents.worker.functions:describe"
_CALL = "agenteval.agents.worker.functions:call"
_PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as the model sees it.

    Attributes:
        schema: JSON Schema of the arguments, an object.
        is_retrieval: whether it returns retrieved passages.
        call: takes the arguments, returns JSON; raises ``AgentError`` with the message for the model.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    is_retrieval: bool
    call: Callable[[Mapping[str, Any]], Awaitable[Any]]


async def function_tool(spec: FunctionTool, workers: WorkerPool) -> Tool:
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
    return Tool(spec.name, spec.description, schema, spec.is_retrieval, call)


def prompt_tool(spec: PromptTool, gateway: Gateway, sample: int) -> Tool:
    """Make a tool from a prompt that a model answers."""

    async def call(arguments: Mapping[str, Any]) -> Any:
        completion = await gateway.complete(
            Call(spec.model, filled(spec.template, arguments), sample=sample, by_agent=True)
        )
        return completion.text

    return Tool(spec.name, spec.description, parameters_schema(spec.parameters), is_retrieval=False, call=call)


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
