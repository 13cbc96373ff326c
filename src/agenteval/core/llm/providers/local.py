"""Embedding models that run on this machine, by model2vec (extra ``local``)."""

from __future__ import annotations

import asyncio
import json
from functools import cached_property
from typing import Any

from agenteval.core.llm.calls import Call, Completion
from agenteval.core.llm.errors import LlmError
from agenteval.core.llm.spec import ModelSpec


class LocalProvider:
    """A static embedding model: a directory, or a name on the Hugging Face Hub, from which it is downloaded once."""

    def __init__(self, model: ModelSpec) -> None:
        self._model = model
        self._loading = asyncio.Lock()
        self._is_loaded = False

    async def complete(self, _call: Call) -> Completion:
        """Raise ``LlmError``: embedding models do not generate text."""
        raise LlmError(f"{self._model.label} makes embeddings only")

    async def embed(self, text: str) -> Completion:
        """Return the vector of a text."""
        try:
            async with self._loading:
                await asyncio.to_thread(self._load)
            vector = await asyncio.to_thread(lambda: self._static_model.encode(text))
        except Exception as error:  # noqa: BLE001 - the library's dependencies raise any exception
            said = f"{type(error).__name__}: {error}"
            needed = "" if self._is_loaded else " (needed: a static model of model2vec)"
            raise LlmError(f"{self._model.label} cannot be used{needed}: {said}") from None
        return Completion(text=json.dumps([float(value) for value in vector]))

    async def close(self) -> None:
        """Do nothing: the model has no connections."""

    def _load(self) -> None:
        self._is_loaded = self._static_model is not None

    @cached_property
    def _static_model(self) -> Any:
        from model2vec import StaticModel

        return StaticModel.from_pretrained(self._model.name)
