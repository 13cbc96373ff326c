"""Language models: their names and endpoints, and the errors of their providers."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Literal

from agenteval.core.errors import AgentEvalError, ConfigError, Kind, Problem
from agenteval.core.records import dataclass, field, replace

#: The environment variable with the API key of each provider that needs one.
KEY_VARIABLES = {"openai": "OPENAI_API_KEY", "azure_openai": "AZURE_OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}


@dataclass(frozen=True)
class ModelSpec:
    """A language model of a provider.

    Attributes:
        temperature: ``None`` for the caller's default.
        endpoint: address of the API; ``None`` for the provider's default.
        api_key: ``None`` for the provider's environment variable.
    """

    provider: str
    name: str
    temperature: float | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    endpoint: str | None = None
    api_key: str | None = field(default=None, repr=False)
    api_version: str | None = None

    @property
    def label(self) -> str:
        """The model's name in reports: ``openai/gpt-4o``."""
        return f"{self.provider}/{self.name}"

    def with_key_of(self, variables: Mapping[str, str]) -> ModelSpec:
        """Return the model with its provider's key of some variables, if it has no key."""
        key = None if self.api_key else variables.get(KEY_VARIABLES.get(self.provider, ""))
        return replace(self, api_key=key) if key else self


#: The judge of HoloDeck suites that name none.
UNNAMED_JUDGE = ModelSpec(provider="ollama", name="gpt-oss:20b", temperature=0.0)


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
    """Return the model of a name."""
    provider, rest = _split(name)
    return ModelSpec(provider=provider, name=rest, temperature=temperature, max_tokens=max_tokens)


def embedding_model(name: str) -> ModelSpec:
    """Return the embedding model of a name; ``local/…`` runs on this machine."""
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


class LlmError(AgentEvalError):
    """A model could not be called, or its provider refused the request.

    Args:
        retry_after_s: the wait that the provider requested, in seconds.
    """

    def __init__(
        self,
        message: str,
        *,
        transient: bool = False,
        retry_after_s: float | None = None,
        is_timeout: bool = False,
    ) -> None:
        super().__init__(message)
        self.is_timeout = is_timeout
        self.transient = transient
        self.retry_after_s = retry_after_s


class OptionRefusedError(LlmError):
    """The provider does not accept an option; the next attempt omits it."""

    def __init__(self, message: str, option: str) -> None:
        super().__init__(message, transient=True)
        self.option = option


class MissingKeyError(ConfigError):
    """A model has no API key."""


class NotAskedError(AgentEvalError):
    """A model was not called because of a limit, or for want of a key; metrics that need it are skipped.

    Args:
        cause: the run's budget, the suite's limit of calls, the suite's sample, or the missing key.
        limit: the same with its size, as a few words: ``limit of 50 calls``.
    """

    def __init__(self, message: str, cause: Literal["budget", "limit", "sample", "key"], limit: str) -> None:
        super().__init__(message)
        self.cause = cause
        self.limit = limit


class BudgetSpentError(NotAskedError):
    """``max_llm_calls`` or ``max_cost_usd`` of the run is exhausted."""

    def __init__(self, message: str, limit: str) -> None:
        super().__init__(message, "budget", limit)


# The address and the key of a model.


_ENDPOINTS = {
    "openai": "OPENAI_BASE_URL",
    "azure_openai": "AZURE_OPENAI_ENDPOINT",
    "anthropic": "ANTHROPIC_BASE_URL",
    "ollama": "OLLAMA_HOST",
}
_SELF_HOSTED_KEY = "not-needed"


# What follows the base in addresses that portals show, and a version that they have.
_OPERATION = re.compile(r"(?:/(?:chat/completions|completions|responses|embeddings))?/*(?:\?.*)?$")
_VERSION = re.compile(r"[?&]api-version=([\w.-]+)")


def reachable(model: ModelSpec) -> ModelSpec:
    """Return the model with its address, and with the version of Azure's API that the address names."""
    if model.provider == "azure_openai":
        written = _VERSION.search(_address(model) or "")
        model = replace(model, api_version=model.api_version or (written[1] if written else None))
    model = replace(model, endpoint=endpoint(model))
    if model.provider == "azure_openai" and not model.endpoint:
        message = f"no address for {model.label}: set AZURE_OPENAI_ENDPOINT, or `endpoint` of the model"
        raise ConfigError(Problem(message, kind=Kind.JUDGE))
    return model


def endpoint(model: ModelSpec) -> str | None:
    """Return a model's address: its ``endpoint``, else the environment's; ``None`` for the provider's public API."""
    address = _address(model)
    is_openai = model.provider in {"openai", "azure_openai"}
    return _OPERATION.sub("", address, count=1) if address and is_openai else address


def _address(model: ModelSpec) -> str | None:
    variable = _ENDPOINTS.get(model.provider)
    return model.endpoint or (os.environ.get(variable) if variable else None) or None


def api_key(model: ModelSpec) -> str:
    """Return the API key of a model: its ``api_key``, else the provider's environment variable."""
    variable = KEY_VARIABLES.get(model.provider)
    if variable is None:
        return _SELF_HOSTED_KEY
    key = model.api_key or os.environ.get(variable)
    if key:
        return key
    if model.provider == "openai" and model.endpoint:
        # Self-hosted servers with OpenAI's protocol accept any key.
        return _SELF_HOSTED_KEY
    raise MissingKeyError(
        Problem(f"no API key for {model.label}: set {variable}, or `api_key` of the model", kind=Kind.JUDGE)
    )
