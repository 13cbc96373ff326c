"""Files of a case: found, downloaded, converted to text."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import threading
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from agenteval.core.confine import run_confined
from agenteval.core.errors import AgentEvalError
from agenteval.core.files import LARGEST_ATTACHMENT, read_regular
from agenteval.suite.cases import PLAIN, content_problem, decode_text, is_old_office
from agenteval.suite.model import FileKind, FileRef

if TYPE_CHECKING:
    pass


LIBRARIES: Mapping[FileKind, Sequence[str]] = {
    "pdf": ("pypdfium2",),
    "word": ("lxml.etree", "mammoth", "markdownify"),
    "excel": ("openpyxl", "xlrd"),
    "powerpoint": ("pptx",),
}

# PDFium is not thread-safe.
_PDFIUM = threading.Lock()
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


class ConversionError(AgentEvalError):
    """The text of a file cannot be read."""


def pdf_text(data: bytes, numbers: Sequence[int] = ()) -> str:
    """Return the text of a PDF, or of some of its pages."""
    import pypdfium2

    with _PDFIUM:
        document = pypdfium2.PdfDocument(data)
        try:
            _check_numbers(numbers, len(document), "page")
            return "\n\n".join(_page_text(document, number - 1) for number in numbers or range(1, len(document) + 1))
        finally:
            document.close()


def _page_text(document: Any, index: int) -> str:
    page = document[index]
    text = page.get_textpage()
    try:
        # PDFium ends lines as Windows does.
        return "\n".join(str(text.get_text_bounded()).splitlines()).strip()
    finally:
        text.close()
        page.close()


def word_text(data: bytes) -> str:
    """Return the text of a Word file; an equation is the text of its parts."""
    import mammoth
    import markdownify

    # Without this, the bytes of each picture would be part of the text.
    pictures = mammoth.images.img_element(lambda _: {"src": ""})
    html = mammoth.convert_to_html(io.BytesIO(_with_equations(data)), convert_image=pictures).value
    return str(markdownify.markdownify(html, heading_style="ATX")).strip()


def _with_equations(data: bytes) -> bytes:
    """Return a Word file whose equations are plain text, as mammoth leaves out equations."""
    from lxml import etree

    with zipfile.ZipFile(io.BytesIO(data)) as package:
        parts = {name: package.read(name) for name in package.namelist()}
    document = parts.get("word/document.xml", b"")
    if b"oMath" not in document:
        return data
    root = etree.fromstring(document, etree.XMLParser(resolve_entities=False, no_network=True))
    for equation in list(root.iter(f"{_MATH}oMath")):
        text = etree.Element(f"{_WORD}t")
        text.text = "".join(part.text or "" for part in equation.iter(f"{_MATH}t"))
        run = etree.Element(f"{_WORD}r")
        run.append(text)
        run.tail = equation.tail
        equation.getparent().replace(equation, run)
    etree.strip_tags(root, f"{_MATH}oMathPara")
    parts["word/document.xml"] = etree.tostring(root)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as package:
        for name, content in parts.items():
            package.writestr(name, content)
    return written.getvalue()


def excel_text(data: bytes, name: str | None = None, cells: str | None = None) -> str:
    """Return all sheets as Markdown tables, or one sheet, or a range of its cells.

    Formulas show their last result.
    """
    if is_old_office(data):
        if name or cells:
            raise ConversionError("is not an .xlsx file; `sheet` and `range` need one")
        return "\n\n".join(_sheet(title, rows) for title, rows in _old_sheets(data))
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(data), data_only=True)
    if not name and not cells:
        return "\n\n".join(_sheet(sheet.title, sheet.iter_rows(values_only=True)) for sheet in book.worksheets)
    sheets = {sheet.title: sheet for sheet in book.worksheets}
    sheet = sheets.get(name or book.active.title)
    if sheet is None:
        raise ConversionError(f"has no sheet {name or book.active.title!r} with cells; it has {', '.join(sheets)}")
    return _sheet(sheet.title, _range(sheet, cells))


def _old_sheets(data: bytes) -> Iterator[tuple[str, list[list[Any]]]]:
    import xlrd

    # Its notes about odd files would quote them.
    with xlrd.open_workbook(file_contents=data, logfile=io.StringIO()) as book:
        for sheet in book.sheets():
            yield sheet.name, [[_old_value(cell, book.datemode) for cell in row] for row in sheet.get_rows()]


def _old_value(cell: Any, datemode: int) -> Any:
    import xlrd

    if cell.ctype == xlrd.XL_CELL_DATE:
        return xlrd.xldate_as_datetime(cell.value, datemode)
    if cell.ctype == xlrd.XL_CELL_BOOLEAN:
        return bool(cell.value)
    if cell.ctype == xlrd.XL_CELL_ERROR:
        return xlrd.error_text_from_code.get(cell.value, "#ERROR")
    # All its numbers are floating-point numbers.
    return int(cell.value) if cell.ctype == xlrd.XL_CELL_NUMBER and cell.value.is_integer() else cell.value


def _range(sheet: Any, cells: str | None) -> Iterator[Sequence[Any]]:
    from openpyxl.utils import range_boundaries

    left, top, right, bottom = range_boundaries(cells.upper()) if cells else (None, None, None, None)
    left, right = _ordered(left, right)
    top, bottom = _ordered(top, bottom)
    rows: Iterator[Sequence[Any]] = sheet.iter_rows(
        min_col=left,
        min_row=top,
        # A range may extend far beyond the sheet's cells.
        max_col=min(right or sheet.max_column, sheet.max_column),
        max_row=min(bottom or sheet.max_row, sheet.max_row),
        values_only=True,
    )
    return rows


def _ordered(first: int | None, last: int | None) -> tuple[int | None, int | None]:
    return (last, first) if first and last and last < first else (first, last)


def powerpoint_text(data: bytes, numbers: Sequence[int] = ()) -> str:
    """Return the text of a presentation, or of some of its slides, each with its notes."""
    import pptx

    slides = list(pptx.Presentation(io.BytesIO(data)).slides)
    _check_numbers(numbers, len(slides), "slide")
    return "\n\n".join(_slide(slides[number - 1], number) for number in numbers or range(1, len(slides) + 1))


def _slide(slide: Any, number: int) -> str:
    parts = [part for part in _shapes(slide.shapes, slide.shapes.title) if part.strip()]
    text = "\n".join([f"<!-- Slide number: {number} -->", *parts]).strip()
    frame = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    notes = frame.text.strip() if frame else ""
    return f"{text}\n\n### Notes:\n{notes}" if notes else text


def _shapes(shapes: Any, title: Any) -> Iterator[str]:
    for shape in sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0)):
        if hasattr(shape, "shapes"):
            yield from _shapes(shape.shapes, title)
        elif shape.has_table:
            yield f"\n{_table([cell.text for cell in row.cells] for row in shape.table.rows)}\n"
        elif shape.has_chart:
            yield f"\n{_chart(shape.chart)}\n"
        elif shape.has_text_frame:
            yield f"# {shape.text.lstrip()}" if shape == title else shape.text
        elif description := shape._element._nvXxPr.cNvPr.get("descr", ""):  # noqa: SLF001 - python-pptx has no name for it
            yield f"![{' '.join(description.split())}]()"


def _chart(chart: Any) -> str:
    title = chart.chart_title.text_frame.text if chart.has_title and chart.chart_title.has_text_frame else ""
    plot = chart.plots[0]
    rows = [
        [category, *(series.values[number] for series in plot.series)]
        for number, category in enumerate(plot.categories)
    ]
    return f"### Chart: {title}\n\n{_table([['Category', *(series.name for series in plot.series)], *rows])}"


def _check_numbers(numbers: Sequence[int], count: int, what: str) -> None:
    missing = [str(number) for number in numbers if number > count]
    if missing:
        has = f"{count} {what}" if count == 1 else f"{count} {what}s"
        raise ConversionError(f"has {has}; there is no {what} {', '.join(missing)}")


def _sheet(title: str, rows: Iterable[Sequence[Any]]) -> str:
    return f"## {title}\n{_table(rows)}".strip()


def _table(rows: Iterable[Sequence[Any]]) -> str:
    texts = [[_cell(value) for value in row] for row in rows]
    if not texts:
        return ""
    head, *rest = texts
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rest))


def _cell(value: Any) -> str:
    return "" if value is None else " ".join(str(value).split()).replace("|", "\\|")


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
    """Return the text of a file, or of the parts that the suite selects."""
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
    """Check the size of a document that is a zip file; readers unpack no part beyond its stated size."""
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
    about = ""
    version = re.match(r"(\d+)\.(\d+)", _said("exiftool", ["-ver"], b"", timeout_s))
    if version and (int(version[1]), int(version[2])) >= _SAFE_EXIFTOOL:
        found = json.loads(_said("exiftool", ["-json", "-"], data, timeout_s) or "[{}]")[0]
        about = "".join(f"{name}: {found[name]}\n" for name in _ABOUT if name in found)
    return f"{about}\n{_said('tesseract', ['stdin', 'stdout'], data, timeout_s)}".strip()


def _said(program: str, arguments: Sequence[str], data: bytes, timeout_s: float) -> str:
    path = shutil.which(program)
    if path is None:
        return ""
    # Not by the path of the image, which could name another file by now.
    with TemporaryFile() as image:
        image.write(data)
        image.seek(0)
        done = run_confined([path, *arguments], Path(os.sep), timeout_s, errors="replace", stdin=image)
    return "" if done.returncode else done.stdout
