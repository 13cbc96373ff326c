"""Embeds texts through the gateway of all model calls."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.llm.calls import Completion, ModelCall
from agenteval.core.llm.gateway import Gateway, key_of
from agenteval.core.llm.models import LOCAL, LlmError, ModelSpec
from agenteval.core.records import dataclass, field

DEFAULT_EMBEDDER = ModelSpec(provider="openai", name="text-embedding-3-small")

Vector = tuple[float, ...]


@dataclass
class Embeddings:
    """The embedding models of a run; every text is sent once."""

    gateway: Gateway
    default: ModelSpec | None = None
    _known: dict[tuple[ModelSpec, str], asyncio.Task[Vector]] = field(default_factory=dict)

    def check(self, model: ModelSpec | None) -> None:
        """Check, before any case runs, that a model can be called."""
        chosen = self._chosen(model)
        try:
            self.gateway.check(chosen)
        except ConfigError as error:
            if model is not None or self.default is not None:
                raise
            said = "; ".join(problem.message for problem in error.problems)
            message = (
                f"similarity needs an embedding model, and none is configured: {said}; or name another one in "
                "agenteval.yaml:\n    embeddings: ollama/nomic-embed-text\n"
                "  or, with pip install 'agenteval-action[local]', one that runs on this machine:\n"
                "    embeddings: local/minishlab/potion-base-8M"
            )
            raise ConfigError(Problem(message, kind=Kind.JUDGE)) from None

    def label(self, model: ModelSpec | None) -> str:
        """Return the model's name in reports."""
        return self._chosen(model).label

    async def vectors(self, texts: Sequence[str], model: ModelSpec | None) -> list[Vector]:
        """Return the vectors of texts in order; an empty text has a zero vector."""
        chosen = self._chosen(model)
        found = dict(zip(texts, await asyncio.gather(*(self._vector(text, chosen) for text in texts)), strict=True))
        size = max(map(len, found.values()), default=0)
        return [found[text] or (0.0,) * size for text in texts]

    async def _vector(self, text: str, model: ModelSpec) -> Vector:
        if not text.strip():
            return ()
        key = (model, text)
        if key not in self._known:
            self._known[key] = asyncio.create_task(self._ask(text, model))
        try:
            return await asyncio.shield(self._known[key])
        except Exception:
            # Forget the failure, so that the next caller sends the text again.
            self._known.pop(key, None)
            raise

    async def _ask(self, text: str, model: ModelSpec) -> Vector:
        # Answers can contain lone surrogates, which cannot be encoded.
        sendable = text.encode("utf-8", "replace").decode("utf-8")
        provider = self.gateway.provider(model)
        if model.provider == LOCAL:
            # Without budget, because the call is free; without cache, because the model's directory can change.
            return read_vector((await provider.embed(sendable)).text)

        async def send() -> Completion:
            return await provider.embed(sendable)

        exchange = ModelCall(model, key_of(model, ["embedding", sendable]), len(sendable.encode()), send)
        completion = await self.gateway.exchange(exchange, lambda answer: read_vector(answer.text))
        return read_vector(completion.text)

    def _chosen(self, model: ModelSpec | None) -> ModelSpec:
        return model or self.default or DEFAULT_EMBEDDER


def read_vector(text: str) -> Vector:
    """Parse a vector: a JSON list of finite numbers."""
    try:
        vector = tuple(float(value) for value in json.loads(text))
    except (ValueError, TypeError):
        vector = ()
    if not vector or not all(map(math.isfinite, vector)):
        raise LlmError("the embedding model sent no vector", transient=True)
    return vector
