"""No code outside the package of a suite format or of an importer knows the format's name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from agenteval.suite.formats.registry import FORMATS

SOURCE = Path(__file__).parents[3] / "src" / "agenteval"
NAMES = frozenset(item.name for item in FORMATS)
#: Packages of formats and importers, and the modules that need a name.
KNOWING = (
    *(f"suite/formats/{name}/" for name in NAMES),
    *(f"results/importers/{name}" for name in NAMES),
    "results/importers/detect.py",
    # The agent kind of this name.
    "suite/agents.py",
    "suite/agent_definitions.py",
    "agents/worker/holodeck.py",
    # It starts the modules of the worker that have these names.
    "agents/python.py",
    # It imports the package of that name, if the user's Python has it.
    "agents/worker/fluxloop.py",
)


def named(source: str) -> Iterator[int]:
    """Yield the lines with a text that is the name of a format; docstrings are longer."""
    if not any(f'"{name}"' in source or f"'{name}'" in source for name in NAMES):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and node.value in NAMES:
            yield node.lineno


def test_the_search_finds_names() -> None:
    assert list(named("if suite.format == 'agentci':\n    strict = True")) == [1]
    assert not list(named('"""Reads agentci."""'))


def test_only_packages_of_formats_know_their_names() -> None:
    found = [
        f"{path}:{line}"
        for file in sorted(SOURCE.rglob("*.py"))
        if not (path := file.relative_to(SOURCE).as_posix()).startswith(KNOWING)
        for line in named(file.read_text(encoding="utf-8"))
    ]
    assert found == []
