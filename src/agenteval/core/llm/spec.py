"""The specification of a model and its endpoint."""

from __future__ import annotations

from dataclasses import dataclass, field


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


#: The judge of HoloDeck suites that name none.
UNNAMED_JUDGE = ModelSpec(provider="ollama", name="gpt-oss:20b", temperature=0.0)
