"""The clients of the providers, one per file."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.llm.models import KEY_VARIABLES, LOCAL, ModelSpec
from agenteval.core.runtime import missing_extra

if TYPE_CHECKING:
    from agenteval.core.llm.calls import Provider

_ENDPOINTS = {
    "openai": "OPENAI_BASE_URL",
    "azure_openai": "AZURE_OPENAI_ENDPOINT",
    "anthropic": "ANTHROPIC_BASE_URL",
    "ollama": "OLLAMA_HOST",
}
_SELF_HOSTED_KEY = "not-needed"


def make_provider(model: ModelSpec) -> Provider:
    """Return the client for a model; its library is imported on first use.

    Raises:
        ConfigError: its API key or address is missing.
    """
    if model.provider == LOCAL:
        return _local(model)
    model = reachable(model)
    if model.provider == "anthropic":
        from agenteval.core.llm.anthropic import AnthropicProvider

        return AnthropicProvider(model, api_key(model))
    if model.provider == "ollama":
        from agenteval.core.llm.ollama import OllamaProvider

        return OllamaProvider(model)
    from agenteval.core.llm.openai import OpenAIProvider

    return OpenAIProvider(model, api_key(model))


def _local(model: ModelSpec) -> Provider:
    missing = missing_extra(LOCAL)
    if missing is not None:
        raise ConfigError(Problem(f"{model.label} needs model2vec: {missing}", kind=Kind.JUDGE))
    from agenteval.core.llm.provider_base import LocalProvider

    return LocalProvider(model)


def reachable(model: ModelSpec) -> ModelSpec:
    """Return the model with its address.

    Raises:
        ConfigError: the address is missing.
    """
    model = replace(model, endpoint=endpoint(model))
    if model.provider == "azure_openai" and not model.endpoint:
        message = f"no address for {model.label}: set AZURE_OPENAI_ENDPOINT, or `endpoint` of the model"
        raise ConfigError(Problem(message, kind=Kind.JUDGE))
    return model


def endpoint(model: ModelSpec) -> str | None:
    """Return a model's address: its ``endpoint``, else the environment's; ``None`` for the provider's public API."""
    variable = _ENDPOINTS.get(model.provider)
    return model.endpoint or (os.environ.get(variable) if variable else None) or None


def api_key(model: ModelSpec) -> str:
    """Return the API key of a model: its ``api_key``, else the provider's environment variable.

    Raises:
        ConfigError: neither is set, and the model is not self-hosted.
    """
    variable = KEY_VARIABLES.get(model.provider)
    if variable is None:
        return _SELF_HOSTED_KEY
    key = model.api_key or os.environ.get(variable)
    if key:
        return key
    if model.provider == "openai" and model.endpoint:
        # Self-hosted servers with OpenAI's protocol accept any key.
        return _SELF_HOSTED_KEY
    raise ConfigError(
        Problem(f"no API key for {model.label}: set {variable}, or `api_key` of the model", kind=Kind.JUDGE)
    )
