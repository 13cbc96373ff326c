"""Prices of calls, from the package genai-prices."""

from __future__ import annotations

from agenteval.core.llm.spec import ModelSpec

_PROVIDERS = {"openai": "openai", "azure_openai": "azure", "anthropic": "anthropic"}


def cost_usd(model: ModelSpec, input_tokens: int | None, output_tokens: int | None) -> float | None:
    """Return the price of one call in US dollars; ``None`` if model or tokens are unknown, 0 for Ollama."""
    if model.provider == "ollama":
        return 0.0
    if input_tokens is None or output_tokens is None:
        return None
    from genai_prices import Usage, calc_price

    try:
        price = calc_price(
            Usage(input_tokens=input_tokens, output_tokens=output_tokens),
            model_ref=model.name,
            provider_id=_PROVIDERS[model.provider],
        )
    except LookupError:
        return None
    return float(price.total_price)
