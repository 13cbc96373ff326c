"""Calls of language models, with cache, budget, limits, retries, usage and cost."""
