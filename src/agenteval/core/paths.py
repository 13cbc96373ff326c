"""Paths as messages and reports show them."""

from __future__ import annotations

from pathlib import Path


def display_path(path: Path) -> str:
    """How a file is called in messages and case ids, with forward slashes.

    Relative to its repository, so that it is the same on every machine and from every directory; outside
    of a repository relative to the working directory; absolute if it lies elsewhere.
    """
    absolute = path.resolve()
    root = next((parent for parent in absolute.parents if (parent / ".git").exists()), Path.cwd())
    return absolute.relative_to(root).as_posix() if absolute.is_relative_to(root) else absolute.as_posix()
