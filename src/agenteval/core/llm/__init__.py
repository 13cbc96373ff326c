"""Calls of language models: cache, budget, limits, retries, usage and cost."""
