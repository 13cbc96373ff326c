"""Evaluate an LLM agent against its suite, compare with a baseline, and gate the merge."""

from __future__ import annotations

from agenteval.core.version import __version__ as __version__
