"""Model entries of ``agenteval.yaml``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pydantic import BaseModel, ConfigDict, Field

from agenteval.core.llm.spec import ModelSpec


class ModelEntry(BaseModel):
    """A model; the short form is its name."""

    model_config = ConfigDict(extra="forbid")

    model: str = Field(min_length=1, description="as in openai/gpt-6-luna, anthropic/claude-…, azure/…, ollama/…")
    endpoint: str | None = Field(None, description="address of the API")
    api_key: str | None = Field(None, repr=False, description="API key; default: the provider's environment variable")
    api_version: str | None = Field(None, description="API version of Azure OpenAI")


def read_model(entry: str | ModelEntry, read: Callable[[str], ModelSpec]) -> ModelSpec:
    """Return the model that an entry names.

    Raises:
        ValueError: no such model exists.
    """
    written = ModelEntry(model=entry) if isinstance(entry, str) else entry
    spec = read(written.model)
    return replace(spec, endpoint=written.endpoint, api_key=written.api_key, api_version=written.api_version)
