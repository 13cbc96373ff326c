"""The client for Ollama."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Mapping, Sequence
from json import JSONDecodeError
from typing import Any, TypeVar

import httpx
import ollama
from pydantic import ValidationError

from agenteval.core.escape import display_url
from agenteval.core.llm.calls import Call, Completion
from agenteval.core.llm.models import LlmError, ModelSpec
from agenteval.core.llm.provider_base import limit_hooks, no_answer, status_error, unreachable_error

Reply = TypeVar("Reply")
_DEFAULT = "http://localhost:11434"
# Seconds for the list of models.
_PATIENCE_S = 3.0


class OllamaProvider:
    """The chat and embedding API of a local or remote Ollama (``OLLAMA_HOST`` if no endpoint is given)."""

    def __init__(self, model: ModelSpec) -> None:
        self._model = model
        self._client = ollama.AsyncClient(
            host=model.endpoint, follow_redirects=False, event_hooks=limit_hooks(model.label)
        )

    async def complete(self, call: Call) -> Completion:
        """Send one request."""
        reply = await self._sent(
            self._client.chat(
                model=self._model.name,
                messages=[{"role": "user", "content": call.prompt}],
                format=dict(call.schema) if call.schema is not None else None,
                options=self._options(),
            )
        )
        text, is_cut = reply.message.content, reply.done_reason == "length"
        if not text:
            raise no_answer(self._model, reply.done_reason, is_cut)
        return Completion(text, reply.prompt_eval_count, reply.eval_count, is_cut=is_cut)

    async def embed(self, text: str) -> Completion:
        """Return the vector of one text."""
        vector, tokens = await self._sent(self._vector(text))
        if not vector:
            raise LlmError(f"{self._model.label} sent no vector", transient=True)
        return Completion(text=json.dumps(list(vector)), input_tokens=tokens, output_tokens=0)

    async def _vector(self, text: str) -> tuple[Sequence[float], int | None]:
        try:
            reply = await self._client.embed(model=self._model.name, input=text)
        except ValidationError:
            # Some servers support only Ollama's earlier API, which has a different address.
            older = await self._client.embeddings(model=self._model.name, prompt=text)
            return older.embedding, None
        return (reply.embeddings[0] if reply.embeddings else ()), reply.prompt_eval_count

    async def _sent(self, request: Awaitable[Reply]) -> Reply:
        try:
            return await request
        except ollama.ResponseError as error:
            raise status_error(self._model, error.status_code, error.error, _headers(error)) from None
        except (ConnectionError, httpx.HTTPError) as error:
            raise unreachable_error(self._model, self._address, error) from None
        except (ValueError, TypeError) as error:
            what = "is not JSON" if isinstance(error, JSONDecodeError) else "does not have Ollama's format"
            raise LlmError(f"{self._model.label} sent a reply that {what}", transient=True) from None

    async def missing(self) -> str:
        """Ask once for the models; return why this one cannot be asked, or an empty text."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                known = await self._client.list()
        except ollama.ResponseError:
            # Something answers, and only its replies show what it can do.
            return ""
        except (ConnectionError, TimeoutError, httpx.HTTPError, ValueError, TypeError):
            return f"nothing answers at {display_url(self._address)}"
        names = [model.model for model in known.models]
        return "" if self._model.name in names else f"Ollama has not downloaded it: `ollama pull {self._model.name}`"

    @property
    def _address(self) -> str:
        return self._model.endpoint or os.environ.get("OLLAMA_HOST") or _DEFAULT

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()  # type: ignore[no-untyped-call] # the library has no types here

    def _options(self) -> dict[str, Any]:
        model = self._model
        options = {"temperature": model.temperature, "top_p": model.top_p, "num_predict": model.max_tokens}
        return {name: value for name, value in options.items() if value is not None}


def _headers(error: ollama.ResponseError) -> Mapping[str, str]:
    """Return the headers of an error response, which the library keeps only in the context of its exception."""
    caught = error.__context__
    return caught.response.headers if isinstance(caught, httpx.HTTPStatusError) else {}
