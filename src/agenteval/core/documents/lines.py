"""Reads plain and gzip files line by line; overlong lines are skipped in pieces."""

from __future__ import annotations

import codecs
import errno
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.files.reading import LARGEST_RECORDING, open_regular

_GZIP = b"\x1f\x8b"
_SKIPPED_AT_ONCE = 1 << 16


def read_lines(file: Path, longest: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield every line of a file with its number from 1; ``None`` for an overlong line.

    Only a line feed ends a line. A byte order mark is removed.

    Args:
        file: a plain or gzip file.
        longest: maximum length of a line in bytes.

    Raises:
        ConfigError: the file cannot be read.
    """
    try:
        with _opened(file) as source:
            yield from _lines(source, longest)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ConfigError(Problem(f"broken gzip data: {error}", file=str(file), kind=Kind.FILE)) from None
    except OSError as error:
        raise ConfigError(Problem(f"cannot be read: {error.strerror}", file=str(file), kind=Kind.FILE)) from None


def read_head(file: Path, size: int) -> bytes:
    """Return the first bytes of a file, unpacked; empty if the file is unreadable or can be read only once.

    Args:
        file: a plain or gzip file.
        size: maximum number of bytes.
    """
    try:
        with _opened(file) as source:
            return source.read(size).removeprefix(codecs.BOM_UTF8)
    except (EOFError, zlib.error, OSError):
        return b""


@contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    with open_regular(file, limit=LARGEST_RECORDING) as source:
        is_gzip = source.read(len(_GZIP)) == _GZIP
        source.seek(0)
        if not is_gzip:
            yield source
            return
        with gzip.open(source) as unpacked:
            yield cast("BinaryIO", unpacked)


def _lines(source: BinaryIO, longest: int) -> Iterator[tuple[int, bytes | None]]:
    number = size = 0
    while line := source.readline(longest + 1):
        number += 1
        size = _within_limit(size + len(line))
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        if len(line) <= longest or line.endswith(b"\n"):
            yield number, line
            continue
        del line
        while (piece := source.readline(_SKIPPED_AT_ONCE)) and not piece.endswith(b"\n"):
            size = _within_limit(size + len(piece))
        yield number, None


def _within_limit(size: int) -> int:
    """Return a number of bytes; a packed file can contain far more than its own size."""
    if size > LARGEST_RECORDING:
        raise OSError(errno.EFBIG, f"it has more than {LARGEST_RECORDING:,} bytes")
    return size
