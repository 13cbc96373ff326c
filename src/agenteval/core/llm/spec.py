"""The specification of a model and its endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

#: The environment variable with the API key of each provider that needs one.
KEY_VARIABLES = {"openai": "OPENAI_API_KEY", "azure_openai": "AZURE_OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A language model of a provider.

    Attributes:
        provider: ``openai``, ``azure_openai``, ``anthropic`` or ``ollama``.
        name: the model, or the deployment for Azure.
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
