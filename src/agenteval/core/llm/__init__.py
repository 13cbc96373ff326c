"""The one way to any language model: cache, budget, limits, retries, usage and cost."""
