"""Which parsers are fuzzed, and the inputs that each begins with."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

Target = Callable[[bytes], None]

FOLDER = Path(__file__).parent
CORPUS = FOLDER / "corpus"
NAMES: tuple[str, ...] = tuple(sorted(path.stem for path in (FOLDER / "targets").glob("*.py")))


def target(name: str) -> Target:
    """What gives bytes to a parser, and lets through only the errors that it documents."""
    found: Target = import_module(f"tests.fuzz.targets.{name}").target
    return found


def folders(name: str) -> list[Path]:
    """Where the inputs of a target are: its own, and the suites of other tests."""
    shared = FOLDER.parent / "data" / name
    return [CORPUS / name, *([shared] if name in {"fluxloop", "holodeck"} else ())]


def corpus(name: str) -> list[Path]:
    """The inputs that are kept for a target."""
    return sorted(path for folder in folders(name) for path in folder.iterdir() if path.is_file())
