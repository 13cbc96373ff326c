"""Adds patterns to ``.gitignore``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from agenteval.core.files.reading import LARGEST_TEXT, read_regular

#: The name of the file.
GITIGNORE = ".gitignore"


def missing_patterns(patterns: Iterable[str], directory: Path, root: Path) -> Sequence[str]:
    """Return the patterns that no ``.gitignore`` from a directory up to the root of its repository has.

    Args:
        patterns: names of files, or of directories with a slash at the end.
        directory: an absolute path.
        root: the directory, or one above it.

    Raises:
        OSError: a file cannot be read.
    """
    above = [folder for folder in directory.parents if folder.is_relative_to(root)]
    # A slash at the beginning means the directory of the file.
    lines = [line.removeprefix("/") for line in _lines(directory)]
    lines += [line for folder in above for line in _lines(folder)]
    present = {form for line in lines for form in _forms(line)}
    return [pattern for pattern in patterns if pattern not in present]


def with_patterns(content: bytes, patterns: Iterable[str]) -> bytes:
    """Return the content of a file with further lines at its end, which have the line end of the others."""
    end = b"\r\n" if b"\r\n" in content else b"\n"
    complete = content if not content or content.endswith(b"\n") else content + end
    return complete + b"".join(pattern.encode() + end for pattern in patterns)


def read_gitignore(directory: Path) -> bytes:
    """Return the content of the file in a directory; empty if it does not exist.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    try:
        return read_regular(directory / GITIGNORE, limit=LARGEST_TEXT)
    except FileNotFoundError:
        return b""


def _lines(directory: Path) -> Sequence[str]:
    return [line.strip() for line in read_gitignore(directory).decode("utf-8", "replace").splitlines()]


def _forms(line: str) -> Iterable[str]:
    """Yield the patterns that a line covers: a name without a slash is that of a file or of a directory."""
    name = line.removeprefix("**/")
    yield from (name, f"{name.removesuffix('/')}/")
