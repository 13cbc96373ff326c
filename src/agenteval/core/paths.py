"""Paths as messages and reports show them."""

from __future__ import annotations

from pathlib import Path


def display_path(path: Path) -> str:
    """Return the path of a file for messages and case ids, with forward slashes.

    Relative to its repository, so that it is equal on every machine and in every directory; outside of a
    repository relative to the working directory; else absolute.
    """
    absolute = path.resolve()
    root = next((parent for parent in absolute.parents if (parent / ".git").exists()), Path.cwd())
    return absolute.relative_to(root).as_posix() if absolute.is_relative_to(root) else absolute.as_posix()
