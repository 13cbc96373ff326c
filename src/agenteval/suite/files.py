"""Checks that files have the kind that the suite declares, and reads plain text files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agenteval.suite.model import FileKind

# Read directly; all other kinds need a converter.
PLAIN: frozenset[FileKind] = frozenset({"text", "csv"})

_ZIP = b"PK\x03\x04"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
# A PDF may have a short prefix.
_PDF_HEAD = 1024
_OFFICE: Mapping[FileKind, str] = {"word": ".docx", "excel": ".xlsx", "powerpoint": ".pptx"}


def is_file(path: Path) -> bool:
    """Return whether a file exists; false for a path that the system rejects, for instance as too long."""
    try:
        return path.is_file()
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """Return whether a folder exists; false for a path that the system rejects."""
    try:
        return path.is_dir()
    except OSError:
        return False


def exists(path: Path) -> bool:
    """Return whether a file or folder exists; false for a path that the system rejects."""
    try:
        return path.exists()
    except OSError:
        return False


def content_problem(kind: FileKind, data: bytes) -> str | None:
    """Return why bytes do not have the declared kind; ``None`` if they may have it."""
    if kind in PLAIN:
        try:
            decode_text(data)
        except ValueError as error:
            return str(error)
        return None
    if kind == "pdf":
        return None if b"%PDF-" in data[:_PDF_HEAD] else "is no PDF file"
    if kind not in _OFFICE or data.startswith(_ZIP) or (kind == "excel" and is_old_office(data)):
        return None
    if is_old_office(data):
        return f"has the old binary format, or a password; save it as {_OFFICE[kind]} without one"
    return f"is no {_OFFICE[kind]} file"


def is_old_office(data: bytes) -> bool:
    """Return whether bytes are a file of Office 97 to 2003, or an encrypted newer one."""
    return data.startswith(_OLE)


def decode_text(data: bytes) -> tuple[str, str]:
    """Return the text of a file, and its encoding: UTF-8, UTF-16 with a byte order mark, else Windows-1252.

    Raises:
        ValueError: the file is not text.
    """
    if data.startswith(_UTF_16):
        return data.decode("utf-16"), "utf-16"
    if b"\0" in data:
        raise ValueError("is not a text file")
    try:
        return data.decode("utf-8-sig"), "utf-8"
    except UnicodeDecodeError:
        pass
    try:
        return data.decode("cp1252"), "cp1252"
    except UnicodeDecodeError:
        raise ValueError("is neither UTF-8 nor Windows-1252 text") from None
