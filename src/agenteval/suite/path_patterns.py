"""Paths of suites with wildcards: ``*``, ``?``, ``[…]``, and ``**`` for directories of any depth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_WILDCARDS = frozenset("*?[")
# Packages of others, which may contain suites.
_FOREIGN = frozenset({"node_modules"})


def is_pattern(path: Path) -> bool:
    """Return whether a path has a wildcard."""
    return not _WILDCARDS.isdisjoint(str(path))


def matching_paths(pattern: Path) -> Sequence[Path]:
    """Return the files and directories that match a pattern, sorted.

    Wildcards match no hidden name and no ``node_modules``, and ``**`` follows no link. At the end of a pattern,
    ``**`` matches directories only.

    Raises:
        ValueError: the pattern is not valid; ``**`` must be a whole part of it.
    """
    parts = pattern.parts
    first = next(index for index, part in enumerate(parts) if not _WILDCARDS.isdisjoint(part))
    if any("**" in part and part != "**" for part in parts):
        raise ValueError("** must be a whole part of the path, as in agents/**/agent.yaml")
    base = Path(*parts[:first])
    found = (path for path in base.glob("/".join(parts[first:])) if not _is_left_out(path, parts))
    return sorted(path for path in found if parts[-1] != "**" or path.is_dir())


def _is_left_out(path: Path, written: Sequence[str]) -> bool:
    return any((part.startswith(".") or part in _FOREIGN) and part not in written for part in path.parts)
