"""Evaluate an LLM agent against its suite, compare with a baseline, and gate the merge."""

__version__ = "0.1.0"
