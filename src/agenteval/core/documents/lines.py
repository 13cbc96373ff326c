"""Reads plain and gzip files line by line; overlong lines are skipped in pieces."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from agenteval.core.errors import ConfigError, Problem

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
        raise ConfigError(Problem(f"broken gzip data: {error}", file=str(file))) from None
    except OSError as error:
        raise ConfigError(Problem(f"cannot be read: {error.strerror}", file=str(file))) from None


def read_head(file: Path, size: int) -> bytes:
    """Return the first bytes of a file, unpacked; empty if the file is unreadable or can be read only once.

    Args:
        file: a plain or gzip file.
        size: maximum number of bytes.
    """
    if not file.is_file():
        return b""
    try:
        with _opened(file) as source:
            return source.read(size).removeprefix(codecs.BOM_UTF8)
    except (EOFError, zlib.error, OSError):
        return b""


def _opened(file: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.open(file, "rb")) if _is_gzip(file) else file.open("rb")


def _is_gzip(file: Path) -> bool:
    # A pipe can be read only once.
    if not file.is_file():
        return False
    with file.open("rb") as source:
        return source.read(len(_GZIP)) == _GZIP


def _lines(source: BinaryIO, longest: int) -> Iterator[tuple[int, bytes | None]]:
    number = 0
    while line := source.readline(longest + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        if len(line) <= longest or line.endswith(b"\n"):
            yield number, line
            continue
        del line
        while (piece := source.readline(_SKIPPED_AT_ONCE)) and not piece.endswith(b"\n"):
            pass
        yield number, None
