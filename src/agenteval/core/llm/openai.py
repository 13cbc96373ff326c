"""The client for OpenAI, Azure OpenAI, and servers with the same protocol."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Mapping
from json import JSONDecodeError
from typing import Any

import openai

from agenteval.core.llm.calls import Call, Completion
from agenteval.core.llm.models import LlmError, ModelSpec
from agenteval.core.llm.provider_base import limit_hooks, refusal, status_error, strict_schema, unreachable_error

AZURE_API_VERSION = "2024-10-21"
# Reasoning models accept no temperature and name the token limit differently: o1, o4-mini, gpt-5 and all later ones.
_REASONING = re.compile(r"o\d|gpt-(?:[5-9]|\d\d)")


def is_reasoning(name: str) -> bool:
    """Return whether a model is a reasoning model, by its name."""
    return _REASONING.match(name) is not None


def make_client(model: ModelSpec, key: str) -> openai.AsyncOpenAI:
    """Return the library's client without its retries, time limits and redirects, which take keys and texts along."""
    http_client = openai.DefaultAsyncHttpxClient(follow_redirects=False, event_hooks=limit_hooks(model.label))
    if model.provider == "azure_openai":
        return openai.AsyncAzureOpenAI(
            azure_endpoint=model.endpoint or "",
            api_key=key,
            api_version=model.api_version or AZURE_API_VERSION,
            max_retries=0,
            timeout=None,
            http_client=http_client,
        )
    return openai.AsyncOpenAI(
        base_url=model.endpoint, api_key=key, max_retries=0, timeout=None, http_client=http_client
    )


class OpenAIProvider:
    """The Chat Completions API.

    Models and servers accept different options. An option that is refused by name is omitted from later
    requests, and the call is repeated without it.
    """

    def __init__(self, model: ModelSpec, key: str) -> None:
        self._model = model
        self._refused: set[str] = set()
        self._client = make_client(model, key)
        # The library imports this part on first use; importing it here keeps the time out of a call's time limit.
        self._completions = self._client.chat.completions

    async def complete(self, call: Call) -> Completion:
        """Send one request."""
        options = {name: value for name, value in self._options(call).items() if name not in self._refused}
        reply = await self._sent(
            self._completions.create(
                model=self._model.name,
                messages=[{"role": "user", "content": call.prompt}],
                **options,
            ),
            options,
        )
        return self._completion(reply)

    async def embed(self, text: str) -> Completion:
        """Return the vector of one text."""
        reply = await self._sent(self._client.embeddings.create(model=self._model.name, input=text), {})
        data = getattr(reply, "data", None)
        if not data:
            raise LlmError(f"{self._model.label} sent no vector", transient=True)
        usage = reply.usage
        return Completion(
            text=json.dumps(data[0].embedding), input_tokens=usage.prompt_tokens if usage else None, output_tokens=0
        )

    async def _sent(self, request: Awaitable[Any], options: Mapping[str, Any]) -> Any:
        """Return the reply to a request; convert the library's exceptions to ``LlmError``."""
        try:
            return await request
        except openai.APIConnectionError as error:
            raise unreachable_error(self._model, self._client.base_url, error.__cause__ or error) from None
        except openai.APIStatusError as error:
            refused = refusal(self._model, error.status_code, error.body, options)
            if refused is not None:
                self._refused.add(refused.option)
                raise refused from None
            raise status_error(self._model, error.status_code, error.body, error.response.headers) from None
        except openai.OpenAIError as error:
            raise LlmError(f"{self._model.label}: {error}") from None
        except (ValueError, TypeError, AttributeError) as error:
            what = "is not JSON" if isinstance(error, JSONDecodeError) else "does not have OpenAI's format"
            raise LlmError(f"{self._model.label} sent a reply that {what}: {error}", transient=True) from None

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _options(self, call: Call) -> dict[str, Any]:
        model = self._model
        reasoning = is_reasoning(model.name)
        options: dict[str, Any] = {}
        if model.temperature is not None and not reasoning:
            options["temperature"] = model.temperature
        if model.top_p is not None and not reasoning:
            options["top_p"] = model.top_p
        if model.max_tokens is not None:
            newer = reasoning or "max_tokens" in self._refused
            options["max_completion_tokens" if newer else "max_tokens"] = model.max_tokens
        if call.top_logprobs:
            options |= {"logprobs": True, "top_logprobs": call.top_logprobs}
        elif call.schema is not None:
            schema = {"name": call.schema_name, "schema": strict_schema(call.schema), "strict": True}
            options["response_format"] = {"type": "json_schema", "json_schema": schema}
        return {**options, **call.options}

    def _completion(self, reply: Any) -> Completion:
        choices = getattr(reply, "choices", None)
        if not choices or choices[0].message is None:
            raise LlmError(f"{self._model.label} sent a reply without an answer", transient=True)
        choice = choices[0]
        if not choice.message.content:
            refusal = getattr(choice.message, "refusal", None) or choice.finish_reason
            raise LlmError(f"{self._model.label} gave no answer: {refusal}")
        logprobs = choice.logprobs.model_dump()["content"] if choice.logprobs is not None else None
        usage = reply.usage
        return Completion(
            text=choice.message.content,
            input_tokens=usage.prompt_tokens if usage else None,
            output_tokens=usage.completion_tokens if usage else None,
            logprobs=logprobs,
        )
