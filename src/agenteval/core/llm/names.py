"""Parses model names in LiteLLM's form: ``gpt-4``, ``anthropic/claude-…``, ``ollama/llama3``."""

from __future__ import annotations

import os

from agenteval.core.llm.spec import ModelSpec

_PROVIDERS = {
    "openai": "openai",
    "azure": "azure_openai",
    "azure_openai": "azure_openai",
    "anthropic": "anthropic",
    "ollama": "ollama",
    "ollama_chat": "ollama",
}
LOCAL = "local"
EMBEDDING_PROVIDERS = ("openai", "azure_openai", "ollama", LOCAL)


def chat_model(name: str, temperature: float | None = 0.0, max_tokens: int | None = None) -> ModelSpec:
    """Return the model of a name.

    Raises:
        ValueError: the provider is not supported.
    """
    provider, rest = _split(name)
    return ModelSpec(provider=provider, name=rest, temperature=temperature, max_tokens=max_tokens)


def embedding_model(name: str) -> ModelSpec:
    """Return the embedding model of a name; ``local/…`` runs on this machine.

    Raises:
        ValueError: the provider has no embedding models.
    """
    prefix, slash, rest = name.partition("/")
    if prefix == LOCAL and slash and rest:
        return ModelSpec(provider=LOCAL, name=rest)
    provider, rest = _split(name)
    if provider not in EMBEDDING_PROVIDERS:
        raise ValueError(f"{provider} has no embedding models; use openai/…, azure/…, ollama/… or local/…")
    return ModelSpec(provider=provider, name=rest)


def _split(name: str) -> tuple[str, str]:
    prefix, slash, rest = name.partition("/")
    if not slash:
        return ("anthropic" if name.startswith("claude") else "openai"), name
    if prefix in _PROVIDERS and rest:
        return _PROVIDERS[prefix], rest
    if os.environ.get("OPENAI_BASE_URL"):
        # Gateways with OpenAI's protocol use such names for the models of many providers.
        return "openai", name
    if prefix in _PROVIDERS:
        raise ValueError(f"{name!r} has no model name after the provider")
    known = ", ".join(f"{item}/…" for item in ("openai", "azure", "anthropic", "ollama"))
    raise ValueError(
        f"unknown provider {prefix!r}; known: {known}. For other providers, use a gateway with "
        "OpenAI's protocol: set OPENAI_BASE_URL"
    )
