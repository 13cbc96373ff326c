"""Agents that are a language model with instructions and tools."""
