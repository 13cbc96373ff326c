"""The client for Anthropic."""

from __future__ import annotations

from typing import Any

import anthropic

from agenteval.core.llm.calls import Call, Completion
from agenteval.core.llm.models import LlmError, ModelSpec
from agenteval.core.llm.provider_base import limit_hooks, refusal, status_error, strict_schema, unreachable_error

# Anthropic's API requires a limit; this one is large enough for any list of verdicts.
_MAX_TOKENS = 8192


def make_client(model: ModelSpec, key: str) -> anthropic.AsyncAnthropic:
    """Return the library's client without its retries, its time limits, which reject long answers, and redirects."""
    http_client = anthropic.DefaultAsyncHttpxClient(follow_redirects=False, event_hooks=limit_hooks(model.label))
    return anthropic.AsyncAnthropic(
        base_url=model.endpoint, api_key=key, max_retries=0, timeout=None, http_client=http_client
    )


class AnthropicProvider:
    """The Messages API. An option that a model refuses by name is omitted from later requests."""

    def __init__(self, model: ModelSpec, key: str) -> None:
        self._model = model
        self._refused: set[str] = set()
        self._client = make_client(model, key)
        # The library imports this part on first use; importing it here keeps the time out of a call's time limit.
        self._messages = self._client.messages

    async def complete(self, call: Call) -> Completion:
        """Send one request."""
        options = {name: value for name, value in self._options(call).items() if name not in self._refused}
        try:
            reply = await self._messages.create(
                model=self._model.name,
                max_tokens=self._model.max_tokens or _MAX_TOKENS,
                messages=[{"role": "user", "content": call.prompt}],
                # In the body, because older versions of the library lack parameters for some options.
                extra_body=options,
            )
        except anthropic.APIConnectionError as error:
            raise unreachable_error(self._model, self._client.base_url, error.__cause__ or error) from None
        except anthropic.APIStatusError as error:
            refused = refusal(self._model, error.status_code, error.body, options)
            if refused is not None:
                self._refused.add(refused.option)
                raise refused from None
            raise status_error(self._model, error.status_code, error.body, error.response.headers) from None
        except anthropic.AnthropicError as error:
            raise LlmError(f"{self._model.label}: {error}") from None
        except ValueError as error:
            raise LlmError(f"{self._model.label} sent a reply that is not JSON: {error}", transient=True) from None
        return self._completion(reply)

    async def embed(self, _text: str) -> Completion:
        """Raise ``LlmError``: Anthropic has no embedding models."""
        raise LlmError(f"{self._model.label}: Anthropic has no embedding models")

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

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
        if not text:
            raise LlmError(f"{self._model.label} gave no answer: {reply.stop_reason}")
        usage = reply.usage
        return Completion(
            text=text,
            input_tokens=usage.input_tokens if usage else None,
            output_tokens=usage.output_tokens if usage else None,
        )
