"""The client for OpenAI, Azure OpenAI, and servers with the same protocol."""

from __future__ import annotations

import json
import re
from typing import Any

import openai

from agenteval.core.llm.calls import Call, Completion
from agenteval.core.llm.models import LlmError, ModelSpec
from agenteval.core.llm.provider_base import LibraryClient, limit_hooks, message_of, no_answer, strict_schema

AZURE_API_VERSION = "2024-10-21"
# Reasoning models accept no temperature and name the token limit differently: o1, o4-mini, gpt-5 and all later ones.
_REASONING = re.compile(r"o\d|gpt-(?:[5-9]|\d\d)")


def is_reasoning(name: str) -> bool:
    """Return whether a model is a reasoning model, by its name."""
    return _REASONING.match(name) is not None


def make_client(model: ModelSpec, key: str) -> openai.AsyncOpenAI:
    """Return the library's client without its retries, time limits and redirects, which take keys and texts along."""
    http_client = openai.DefaultAsyncHttpxClient(follow_redirects=False, event_hooks=limit_hooks(model.label))
    shared: dict[str, Any] = {"api_key": key, "max_retries": 0, "timeout": None, "http_client": http_client}
    if model.provider != "azure_openai":
        return openai.AsyncOpenAI(base_url=model.endpoint, **shared)
    address, version = (model.endpoint or "").rstrip("/"), model.api_version
    if address.endswith("/openai/v1"):
        # Azure's newer API is OpenAI's own, and needs no version.
        return openai.AsyncOpenAI(
            base_url=address, default_query={"api-version": version} if version else None, **shared
        )
    key_of_place = "base_url" if "/deployments/" in address else "azure_endpoint"
    place: dict[str, Any] = {key_of_place: address.removesuffix("/openai")}
    return openai.AsyncAzureOpenAI(**place, api_version=version or AZURE_API_VERSION, **shared)


class OpenAIProvider(LibraryClient):
    """The Chat Completions API; models and servers accept different options."""

    def __init__(self, model: ModelSpec, key: str) -> None:
        super().__init__(model, openai, make_client(model, key), "OpenAI")
        # The library imports this part on first use; importing it here keeps the time out of a call's time limit.
        self._completions = self._client.chat.completions

    async def complete(self, call: Call) -> Completion:
        """Send one request."""
        options = self._accepted(self._options(call))
        messages = [{"role": "user", "content": call.prompt}]
        request = self._completions.create(model=self._model.name, messages=messages, **options)
        return self._completion(await self._sent(request, options))

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
            said = f": {message_of(error)}" if (error := getattr(reply, "error", None)) else ""
            raise LlmError(f"{self._model.label} sent a reply without an answer{said}", transient=True)
        choice = choices[0]
        is_cut = choice.finish_reason == "length"
        text = _text(choice.message.content)
        if not text:
            raise no_answer(self._model, getattr(choice.message, "refusal", None) or choice.finish_reason, is_cut)
        logprobs = choice.logprobs.model_dump()["content"] if choice.logprobs is not None else None
        usage = reply.usage
        return Completion(
            text=text,
            input_tokens=usage.prompt_tokens if usage else None,
            output_tokens=usage.completion_tokens if usage else None,
            logprobs=logprobs,
            is_cut=is_cut,
        )


def _text(content: Any) -> str:
    """Return the text of a message; some servers send it in parts, beside the model's thoughts."""
    if not isinstance(content, list):
        return content or ""
    return "".join(text for part in content if isinstance(text := dict(part).get("text"), str))
