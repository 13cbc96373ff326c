"""The client for Anthropic."""

from __future__ import annotations

from typing import Any

import anthropic

from agenteval.core.llm.calls import Call, Completion
from agenteval.core.llm.models import LlmError, ModelSpec
from agenteval.core.llm.provider_base import LibraryClient, limit_hooks, no_answer, strict_schema

# Anthropic's API requires a limit; this one is large enough for any list of verdicts.
_MAX_TOKENS = 8192


def make_client(model: ModelSpec, key: str) -> anthropic.AsyncAnthropic:
    """Return the library's client without its retries, its time limits, which reject long answers, and redirects."""
    http_client = anthropic.DefaultAsyncHttpxClient(follow_redirects=False, event_hooks=limit_hooks(model.label))
    return anthropic.AsyncAnthropic(
        base_url=model.endpoint, api_key=key, max_retries=0, timeout=None, http_client=http_client
    )


class AnthropicProvider(LibraryClient):
    """The Messages API."""

    def __init__(self, model: ModelSpec, key: str) -> None:
        super().__init__(model, anthropic, make_client(model, key), "Anthropic")
        # The library imports this part on first use; importing it here keeps the time out of a call's time limit.
        self._messages = self._client.messages

    async def complete(self, call: Call) -> Completion:
        """Send one request."""
        options = self._accepted(self._options(call))
        request = self._messages.create(
            model=self._model.name,
            max_tokens=self._model.max_tokens or _MAX_TOKENS,
            messages=[{"role": "user", "content": call.prompt}],
            # In the body, because older versions of the library lack parameters for some options.
            extra_body=options,
        )
        return self._completion(await self._sent(request, options))

    async def embed(self, _text: str) -> Completion:
        """Raise ``LlmError``: Anthropic has no embedding models."""
        raise LlmError(f"{self._model.label}: Anthropic has no embedding models")

    def _options(self, call: Call) -> dict[str, Any]:
        options: dict[str, Any] = {}
        # Newer models reject a temperature, so it is sent only if a suite sets one other than 0.
        if self._model.temperature:
            options["temperature"] = self._model.temperature
        if self._model.top_p is not None:
            options["top_p"] = self._model.top_p
        if call.schema is not None:
            options["output_config"] = {"format": {"type": "json_schema", "schema": strict_schema(call.schema)}}
        return options

    def _completion(self, reply: Any) -> Completion:
        blocks = getattr(reply, "content", None)
        if not isinstance(blocks, list):
            raise LlmError(f"{self._model.label} sent a reply without an answer", transient=True)
        text = "".join(block.text for block in blocks if getattr(block, "type", "") == "text")
        is_cut = reply.stop_reason == "max_tokens"
        if not text:
            raise no_answer(self._model, reply.stop_reason, is_cut)
        usage = reply.usage
        return Completion(
            text=text,
            input_tokens=usage.input_tokens if usage else None,
            output_tokens=usage.output_tokens if usage else None,
            is_cut=is_cut,
        )
