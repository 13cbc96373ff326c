"""What is looked up in a repository before anything runs: its Python modules and .env.

The outline of a module documents SyntaxError, ValueError, RecursionError and MemoryError; the rest raises nothing."""

from __future__ import annotations

from contextlib import suppress

from agenteval.agents.frameworks.outline import outline
from agenteval.core.document import parse_dotenv


def target(data: bytes) -> None:
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        outline(data, "module", "module.py")
    parse_dotenv(data.decode("utf-8", "replace"))
