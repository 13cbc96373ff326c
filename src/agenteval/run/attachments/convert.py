"""Reads the text of files, with markitdown unless they are plain text; blocks, so it runs in a thread."""

from __future__ import annotations

import io
import logging
import os
import re
import shutil
import threading
import zipfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from agenteval.core.errors import AgentEvalError
from agenteval.core.files.boundary import boundary
from agenteval.core.files.reading import LARGEST_ATTACHMENT, read_regular
from agenteval.core.process.confinement import confinement
from agenteval.core.process.run_confined import run_confined
from agenteval.suite.files import PLAIN, content_problem, decode_text, is_old_office
from agenteval.suite.model import FileKind, FileRef

_CONVERTERS: dict[FileKind, tuple[str, str]] = {
    "pdf": ("PdfConverter", ".pdf"),
    "word": ("DocxConverter", ".docx"),
    "excel": ("XlsxConverter", ".xlsx"),
    "powerpoint": ("PptxConverter", ".pptx"),
}
# The line with which markitdown begins each slide.
_SLIDE = re.compile(r"^<!-- Slide number: (\d+) -->$", re.MULTILINE)
# PDFium is not thread-safe.
_PDFIUM = threading.Lock()

# Bytes of all parts of a document together; their readers need several times as much memory.
_MAX_UNPACKED = 100_000_000


class ConversionError(AgentEvalError):
    """The text of a file cannot be read."""


def load_libraries(kind: FileKind) -> None:
    """Import the libraries that read files of a kind."""
    if kind not in PLAIN:
        import_module("markitdown.converters")


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
    if file.kind == "excel" and (file.sheet or file.range):
        return _cells(data, file.sheet, file.range)
    if file.kind == "pdf" and file.pages:
        data = _pages(data, file.pages)
    text = _markdown(file.kind, data)
    return _slides(text, file.pages) if file.kind == "powerpoint" and file.pages else text


def _markdown(kind: FileKind, data: bytes) -> str:
    _quiet()
    from markitdown import StreamInfo, converters

    name, suffix = ("XlsConverter", ".xls") if kind == "excel" and is_old_office(data) else _CONVERTERS[kind]
    converter = getattr(converters, name)()
    # Converters are called directly, as the kind is known: markitdown would load a model to guess it.
    text: str = converter.convert(io.BytesIO(data), StreamInfo(extension=suffix)).markdown
    return text


def _quiet() -> None:
    """Silence the libraries, whose warnings quote the files' contents."""
    for name in ("pdfminer", "pdfplumber"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _image(data: bytes, timeout_s: float) -> str:
    """Return an image's metadata by exiftool and its text by tesseract, if these are installed.

    The image comes from a suite and the programs from the job's PATH, so they get the rights of user code. exiftool,
    which markitdown starts, does not run where file access is limited.
    """
    from markitdown import StreamInfo, converters

    exiftool = None if boundary().roots or confinement().owner else shutil.which("exiftool")
    converter = converters.ImageConverter()
    about = converter.convert(io.BytesIO(data), StreamInfo(), exiftool_path=exiftool).markdown
    tesseract = shutil.which("tesseract")
    if tesseract is None:
        return about
    # Not by its path, which could name another file by now.
    with TemporaryFile() as image:
        image.write(data)
        image.seek(0)
        argv = [tesseract, "stdin", "stdout"]
        done = run_confined(argv, Path(os.sep), timeout_s, errors="replace", stdin=image)
    # tesseract fails for unknown formats; the text is then empty.
    text = "" if done.returncode else done.stdout
    return f"{about}\n{text}".strip()


def _pages(data: bytes, numbers: Sequence[int]) -> bytes:
    """Return a PDF of some pages of another."""
    import pypdfium2

    with _PDFIUM:
        whole = pypdfium2.PdfDocument(data)
        part = pypdfium2.PdfDocument.new()
        try:
            _check_numbers(numbers, len(whole), "page")
            part.import_pages(whole, [number - 1 for number in numbers])
            written = io.BytesIO()
            part.save(written)
        finally:
            part.close()
            whole.close()
    return written.getvalue()


def _slides(text: str, numbers: Sequence[int]) -> str:
    """Return some slides of a presentation's text."""
    starts: list[int] = []
    for found in _SLIDE.finditer(text):
        # A slide may contain such a line; only the next number begins a slide.
        if int(found[1]) == len(starts) + 1:
            starts.append(found.start())
    _check_numbers(numbers, len(starts), "slide")
    ends = [*starts[1:], len(text)]
    return "\n\n".join(text[starts[number - 1] : ends[number - 1]].strip() for number in numbers)


def _check_numbers(numbers: Sequence[int], count: int, what: str) -> None:
    missing = [str(number) for number in numbers if number > count]
    if missing:
        has = f"{count} {what}" if count == 1 else f"{count} {what}s"
        raise ConversionError(f"has {has}; there is no {what} {', '.join(missing)}")


def _cells(data: bytes, name: str | None, cells: str | None) -> str:
    """Return a sheet, or a range of its cells, as a Markdown table; formulas show their last result."""
    import openpyxl
    from openpyxl.utils import range_boundaries

    if is_old_office(data):
        raise ConversionError("is not an .xlsx file; `sheet` and `range` need one")
    book = openpyxl.load_workbook(io.BytesIO(data), data_only=True)
    sheets = {sheet.title: sheet for sheet in book.worksheets}
    sheet = sheets.get(name or book.active.title)
    if sheet is None:
        raise ConversionError(f"has no sheet {name or book.active.title!r} with cells; it has {', '.join(sheets)}")
    left, top, right, bottom = range_boundaries(cells.upper()) if cells else (None, None, None, None)
    left, right = _ordered(left, right)
    top, bottom = _ordered(top, bottom)
    rows = sheet.iter_rows(
        min_col=left,
        min_row=top,
        # A range may extend far beyond the sheet's cells.
        max_col=min(right or sheet.max_column, sheet.max_column),
        max_row=min(bottom or sheet.max_row, sheet.max_row),
        values_only=True,
    )
    return f"## {sheet.title}\n{_table([[_cell(value) for value in row] for row in rows])}"


def _ordered(first: int | None, last: int | None) -> tuple[int | None, int | None]:
    """Return the two ends of a range in ascending order."""
    return (last, first) if first and last and last < first else (first, last)


def _table(rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    head, *rest = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rest))


def _cell(value: Any) -> str:
    return "" if value is None else " ".join(str(value).split()).replace("|", "\\|")
