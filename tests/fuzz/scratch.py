"""Gives foreign bytes to parsers that read files."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path


@cache
def _folder(pid: int) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix=f"agenteval-fuzz-{pid}-")


def as_file(data: bytes, place: str) -> Path:
    """A file that holds the bytes until the next call for the same place, in a folder of this process."""
    path = Path(_folder(os.getpid()).name) / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
