"""Models and tools of a model agent for pydantic-ai; every request goes through the gateway."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, cast
from urllib.parse import urlsplit

from pydantic import TypeAdapter
from pydantic_ai import RunContext
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelHTTPError,
    ToolFailed,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from agenteval.agents.worker.pool import WorkerPool
from agenteval.core.errors import AgentError, AgentImportError, ConfigError, Kind, UserCodeError, agent_problem
from agenteval.core.llm.calls import Call, CallTotals, Completion, ModelCall
from agenteval.core.llm.gateway import Gateway, key_of
from agenteval.core.llm.models import LlmError, ModelSpec, api_key, reachable
from agenteval.core.llm.provider_base import refusal, status_error, unreachable_error
from agenteval.core.records import dataclass, replace
from agenteval.results.case import ToolCall
from agenteval.suite.model_tools import FunctionTool, PromptTool

_OLLAMA_PORT = 11434
_SETTINGS = ("temperature", "top_p", "max_tokens")
# Names of settings that differ between providers.
_OTHER_NAMES = {"max_tokens": "max_completion_tokens"}
# Fields of messages that are not sent to the model.
_MESSAGE_CONTENT = ("kind", "instructions", "parts")
_PARAMETERS = TypeAdapter(ModelRequestParameters)


class ModelClient:
    """One model for all conversations of an agent."""

    def __init__(self, spec: ModelSpec) -> None:
        self.spec = spec
        self.model, self._connection = _library_model(reachable(spec))
        self._refused: set[str] = set()

    @property
    def writes_json(self) -> bool:
        """Whether the provider enforces an answer schema."""
        return bool(self.model.profile.get("supports_json_schema_output"))

    @property
    def settings(self) -> ModelSettings:
        """Return the suite's settings without those that the model rejects."""
        profile = cast("Mapping[str, Any]", self.model.profile)
        unwanted = set(self._refused)
        if profile.get("anthropic_disallows_sampling_settings") or profile.get("openai_supports_reasoning"):
            unwanted |= {"temperature", "top_p"}
        given = {name: getattr(self.spec, name) for name in _SETTINGS}
        kept = {name: value for name, value in given.items() if value is not None and name not in unwanted}
        # Without this the library adds instructions for some models, but only the suite's instructions are evaluated.
        return cast("ModelSettings", {**kept, "framing_announcement": "never"})

    async def request(self, messages: list[ModelMessage], parameters: ModelRequestParameters) -> ModelResponse:
        """Send one request."""
        label = self.spec.label
        settings = self.settings
        try:
            return await self.model.request(messages, settings, parameters)
        except ModelHTTPError as error:
            # The settings of this request only: a concurrent request may have lost the same setting meanwhile.
            options = {_OTHER_NAMES.get(name, name): name for name in _SETTINGS if name in settings}
            options |= {name: name for name in options.values()}
            refused = refusal(self.spec, error.status_code, error.body, options)
            if refused is not None:
                self._refused.add(options[refused.option])
                raise refused from None
            raise status_error(self.spec, error.status_code, error.body, error.headers or {}) from None
        except ModelAPIError as error:
            cause = error.__cause__.__cause__ if error.__cause__ else None
            raise unreachable_error(self.spec, self._connection.base_url, cause or error) from None
        except ContentFilterError as error:
            raise LlmError(f"{label} gave no answer: {error.message}") from None
        except UnexpectedModelBehavior as error:
            raise LlmError(f"{label} sent a reply that cannot be used: {error.message}", transient=True) from None
        except (TypeError, ValueError, AttributeError, LookupError) as error:
            # The library raises these if a reply does not have the provider's format.
            raise LlmError(f"{label} sent a reply that cannot be read: {error}", transient=True) from None

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.close()


class MeteredModel(WrapperModel):
    """A model in one conversation: cached, budgeted, rate-limited, retried and counted.

    Args:
        client: the model's client.
        gateway: counts all model calls of the run.
        sample: distinguishes iterations of a case, so that each has separate cache entries.
    """

    def __init__(self, client: ModelClient, gateway: Gateway, sample: int) -> None:
        super().__init__(client.model)
        self._client = client
        self._gateway = gateway
        self._sample = sample
        self.tally = CallTotals()

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,  # noqa: ARG002 - the client selects the accepted settings
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Send the conversation to the model, or return the cached reply to it."""
        content = _content(messages)
        asked = [content, _PARAMETERS.dump_python(model_request_parameters, mode="json")]

        async def send() -> Completion:
            return _completion(await self._client.request(messages, model_request_parameters))

        key = key_of(self._client.spec, ["agent", *asked, self._sample])
        size = len(str(asked).encode("utf-8", "surrogatepass"))
        exchange = ModelCall(self._client.spec, key, size, send, by_agent=True)
        completion = await self._gateway.exchange(exchange, lambda answer: _response(answer.text))
        self.tally.add(completion)
        return _response(completion.text)


def _content(messages: Sequence[ModelMessage]) -> list[dict[str, Any]]:
    dumped = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
    return [
        {
            key: [{name: item for name, item in part.items() if name != "timestamp"} for part in value]
            if key == "parts"
            else value
            for key, value in message.items()
            if key in _MESSAGE_CONTENT
        }
        for message in dumped
    ]


def _completion(response: ModelResponse) -> Completion:
    usage = response.usage
    counted = bool(usage.input_tokens or usage.output_tokens)
    return Completion(
        text=ModelMessagesTypeAdapter.dump_json([response]).decode(),
        input_tokens=usage.input_tokens if counted else None,
        output_tokens=usage.output_tokens if counted else None,
    )


def _response(text: str) -> ModelResponse:
    try:
        (response,) = ModelMessagesTypeAdapter.validate_json(text)
    except ValueError as error:
        raise LlmError(f"the stored reply cannot be read: {error}") from None
    if not isinstance(response, ModelResponse):
        raise LlmError("the stored reply is not a model response")
    return response


def _library_model(spec: ModelSpec) -> tuple[Model, Any]:
    """Return the library's model and the client to close; each provider's library is imported on use."""
    if spec.provider == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        from agenteval.core.llm.anthropic import make_client as anthropic_client

        connection = anthropic_client(spec, api_key(spec))
        return AnthropicModel(spec.name, provider=AnthropicProvider(anthropic_client=connection)), connection
    return _openai_model(spec)


def _openai_model(spec: ModelSpec) -> tuple[Model, Any]:
    from openai import AsyncAzureOpenAI
    from pydantic_ai.models.ollama import OllamaModel
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.azure import AzureProvider
    from pydantic_ai.providers.ollama import OllamaProvider
    from pydantic_ai.providers.openai import OpenAIProvider

    from agenteval.core.llm.openai import make_client

    # Only OpenAI certainly accepts the new name of the token limit; other servers may require the old name.
    older = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=False)
    if spec.provider == "ollama":
        connection = make_client(replace(spec, endpoint=ollama_address(spec.endpoint)), api_key(spec))
        model: Model = OllamaModel(spec.name, provider=OllamaProvider(openai_client=connection), profile=older)
        return model, connection
    connection = make_client(spec, api_key(spec))
    if spec.provider == "azure_openai":
        azure = AzureProvider(openai_client=cast("AsyncAzureOpenAI", connection))
        return OpenAIChatModel(spec.name, provider=azure), connection
    own = spec.endpoint is None or urlsplit(spec.endpoint).hostname == "api.openai.com"
    provider = OpenAIProvider(openai_client=connection)
    return OpenAIChatModel(spec.name, provider=provider, profile=None if own else older), connection


def ollama_address(endpoint: str | None) -> str:
    """Return the address of Ollama's OpenAI-compatible API.

    Args:
        endpoint: in the format of ``OLLAMA_HOST``: a URL, a host, or host and port; with or without ``/v1``.
    """
    address = (endpoint or f"localhost:{_OLLAMA_PORT}").rstrip("/").removesuffix("/v1")
    if "://" not in address:
        host, _, path = address.partition("/")
        has_port = host.rpartition(":")[2].isdigit()
        address = f"http://{host if has_port else f'{host}:{_OLLAMA_PORT}'}{'/' if path else ''}{path}"
    return f"{address}/v1"


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
    """Make a tool from a user function; import it once to check that it exists."""
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
