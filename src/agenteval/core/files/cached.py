"""Reads and writes files of caches, which user code may be able to change; their content needs a seal."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from agenteval.core.errors import InfrastructureError
from agenteval.core.files.writing import make_directory, write_bytes

# Larger files are not of a cache.
_MOST_BYTES = 64 * 2**20
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def read_cache_file(path: Path, limit: int = _MOST_BYTES) -> bytes | None:
    """Return the content of a file; ``None`` if it is missing, larger than the limit, or not a regular file.

    Raises:
        OSError: it cannot be read, or is a link.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    if not _fits(found, limit):
        return None
    descriptor = os.open(path, _FLAGS)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(limit) if _fits(os.fstat(descriptor), limit) else None


def write_cache_file(path: Path, content: bytes) -> None:
    """Replace a file in one step, and create its directories, which belong to the owner of the workspace.

    Raises:
        OSError: it cannot be written.
    """
    try:
        make_directory(path.parent)
        write_bytes(path.parent, path.name, content)
    except InfrastructureError as error:
        raise OSError(str(error)) from None


def _fits(found: os.stat_result, limit: int) -> bool:
    return stat.S_ISREG(found.st_mode) and found.st_size <= limit
