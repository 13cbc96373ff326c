"""Reads the text of files; blocks, so it runs in a thread."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import zipfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile

from agenteval.core.files.reading import LARGEST_ATTACHMENT, read_regular
from agenteval.core.process.run_confined import run_confined
from agenteval.run.attachments.documents import (
    LIBRARIES,
    ConversionError,
    excel_text,
    pdf_text,
    powerpoint_text,
    word_text,
)
from agenteval.suite.files import PLAIN, content_problem, decode_text
from agenteval.suite.model import FileKind, FileRef

# What exiftool says about a picture.
_ABOUT = (
    *("ImageSize", "Title", "Caption", "Description", "Keywords", "Artist", "Author"),
    *("DateTimeOriginal", "CreateDate", "GPSPosition"),
)
# Earlier versions of exiftool run code in images (CVE-2021-22204).
_SAFE_EXIFTOOL = (12, 24)

# Bytes of all parts of a document together; their readers need several times as much memory.
_MAX_UNPACKED = 100_000_000


def load_libraries(kind: FileKind) -> None:
    """Import the libraries that read files of a kind."""
    for name in LIBRARIES.get(kind, ()):
        import_module(name)


def read_file(file: FileRef, path: Path) -> str:
    """Return the text of a file, or of the parts that the suite selects.

    Args:
        file: its entry in the suite.
        path: its path.

    Raises:
        ConversionError: the file is damaged, or a part does not exist.
    """
    try:
        data = read_regular(path, limit=LARGEST_ATTACHMENT)
    except OSError as error:
        raise ConversionError(f"{file.name} cannot be read: {error.strerror}") from None
    problem = content_problem(file.kind, data)
    if problem:
        raise ConversionError(f"{file.name} {problem}")
    try:
        return _read(file, data)
    except ConversionError as error:
        raise ConversionError(f"{file.name} {error}") from None
    except Exception as error:  # noqa: BLE001 - the libraries raise any exception for a damaged file
        raise ConversionError(f"{file.name} cannot be read as {file.kind}: {type(error).__name__}: {error}") from None


def _check_unpacked(data: bytes) -> None:
    """Check the size of a document that is a zip file; readers unpack no part beyond the size that its entry states.

    Raises:
        ConversionError: its parts are too large for this process.
    """
    if not zipfile.is_zipfile(io.BytesIO(data)):
        return
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        size = sum(part.file_size for part in packed.infolist())
    if size > _MAX_UNPACKED:
        raise ConversionError(f"has {size:,} bytes when it is unpacked; the limit is {_MAX_UNPACKED:,}")


def _read(file: FileRef, data: bytes) -> str:
    if file.kind in PLAIN:
        return decode_text(data)[0]
    if file.kind == "image":
        return _image(data, file.convert_s)
    _check_unpacked(data)
    if file.kind == "pdf":
        return pdf_text(data, file.pages or ())
    if file.kind == "excel":
        return excel_text(data, file.sheet, file.range)
    if file.kind == "powerpoint":
        return powerpoint_text(data, file.pages or ())
    return word_text(data)


def _image(data: bytes, timeout_s: float) -> str:
    """Return an image's metadata by exiftool and its text by tesseract, if these are installed.

    The image comes from a suite and the programs from the job's PATH, so they get the rights of user code.
    """
    about = ""
    version = re.match(r"(\d+)\.(\d+)", _said("exiftool", ["-ver"], b"", timeout_s))
    if version and (int(version[1]), int(version[2])) >= _SAFE_EXIFTOOL:
        found = json.loads(_said("exiftool", ["-json", "-"], data, timeout_s) or "[{}]")[0]
        about = "".join(f"{name}: {found[name]}\n" for name in _ABOUT if name in found)
    return f"{about}\n{_said('tesseract', ['stdin', 'stdout'], data, timeout_s)}".strip()


def _said(program: str, arguments: Sequence[str], data: bytes, timeout_s: float) -> str:
    """Return the output of a program that reads an image; empty if it is missing, or does not know the format."""
    path = shutil.which(program)
    if path is None:
        return ""
    # Not by the path of the image, which could name another file by now.
    with TemporaryFile() as image:
        image.write(data)
        image.seek(0)
        done = run_confined([path, *arguments], Path(os.sep), timeout_s, errors="replace", stdin=image)
    return "" if done.returncode else done.stdout
