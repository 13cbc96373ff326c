"""What is looked up in a repository before anything runs: its Python modules, dependencies and .env.

The outline of a module documents SyntaxError, ValueError, RecursionError and MemoryError; the rest raises nothing."""

from __future__ import annotations

from contextlib import suppress

from tests.fuzz.scratch import as_file

from agenteval.agents.frameworks.outline import outline, project_dependencies
from agenteval.core.document import parse_dotenv

_FILES = ("pyproject.toml", "requirements.txt", "setup.cfg", "setup.py")


def target(data: bytes) -> None:
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        outline(data, "module", "module.py")
    parse_dotenv(data.decode("utf-8", "replace"))
    for name in _FILES:
        root = as_file(data, f"source_code/{name}").parent
    project_dependencies(root)
