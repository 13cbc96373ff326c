"""Small real documents of the kinds that a case may have as files."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

DATA = Path(__file__).parents[1] / "data" / "files"
# Office 97, as nothing writes it here.
OLD_WORKBOOK = DATA / "prices.xls"

_WORD_NAMESPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_WORD: Mapping[str, str] = {
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
    'wordprocessingml.document.main+xml"/></Types>',
    "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Target="word/document.xml" Type="http://schemas.openxmlformats.org/officeDocument/'
    '2006/relationships/officeDocument"/></Relationships>',
}


def pdf(*pages: str) -> bytes:
    """A PDF with one line of text on each page."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>"]
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects.append(f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>")
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> "
            f"/Contents {5 + 2 * number} 0 R >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    written = io.BytesIO(b"%PDF-1.4\n")
    written.seek(0, io.SEEK_END)
    places = []
    for number, content in enumerate(objects, start=1):
        places.append(written.tell())
        written.write(f"{number} 0 obj\n{content}\nendobj\n".encode("latin-1"))
    table = written.tell()
    rows = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    written.write(f"xref\n0 {size}\n0000000000 65535 f \n{rows}".encode())
    written.write(f"trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n".encode())
    return written.getvalue()


def docx(*paragraphs: str, body: str = "") -> bytes:
    """A Word document; the body is XML."""
    text = body or "".join(f"<w:p><w:r><w:t>{paragraph}</w:t></w:r></w:p>" for paragraph in paragraphs)
    document = f'<w:document xmlns:w="{_WORD_NAMESPACE}"><w:body>{text}</w:body></w:document>'
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as package:
        for name, content in {**_WORD, "word/document.xml": document}.items():
            package.writestr(name, f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>{content}')
    return written.getvalue()


def xlsx(**sheets: Sequence[Sequence[Any]]) -> bytes:
    """A workbook; the first sheet is the active one."""
    from openpyxl import Workbook

    book = Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    written = io.BytesIO()
    book.save(written)
    return written.getvalue()


def pptx(*slides: tuple[str, str]) -> bytes:
    """A presentation: title and text of each slide."""
    from pptx import Presentation

    presentation = Presentation()
    for title, text in slides:
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        assert slide.shapes.title is not None
        slide.shapes.title.text = title
        slide.placeholders[1].text = text
    written = io.BytesIO()
    presentation.save(written)
    return written.getvalue()


def full_pptx() -> bytes:
    """A slide with a title, a table, a group, a chart, a picture, and notes, from top to bottom."""
    from pptx import Presentation
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE
    from pptx.util import Inches

    presentation = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[5])
    shapes, left, size = slide.shapes, Inches(1), (Inches(4), Inches(1))
    assert shapes.title is not None
    picture = shapes.add_picture(io.BytesIO(png("bike")), left, Inches(6), *size)
    picture._element._nvXxPr.cNvPr.set("descr", "A red\nbike")
    # python-pptx has no types for it.
    data: Any = cast("Any", CategoryChartData)()
    data.categories = ["City", "E-bike"]
    data.add_series("2025", (1, 3))
    data.add_series("2026", (2, None))
    chart: Any = shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, left, Inches(5), *size, data)
    chart.chart.has_title = True
    chart.chart.chart_title.text_frame.text = "Sales"
    table = shapes.add_table(2, 2, left, Inches(2), *size).table
    for row, texts in enumerate((("Bike", "Euro"), ("City", "a|b"))):
        for column, text in enumerate(texts):
            table.cell(row, column).text = text
    shapes.add_group_shape().shapes.add_textbox(left, Inches(4), *size).text_frame.text = "in a group"
    shapes.title.text = "Prices"
    notes = slide.notes_slide.notes_text_frame
    assert notes is not None
    notes.text = "Say it slowly"
    written = io.BytesIO()
    presentation.save(written)
    return written.getvalue()


def png(text: str) -> bytes:
    """A picture of a few words, large enough to be read."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (900, 160), "white")
    ImageDraw.Draw(image).text((30, 40), text, fill="black", font=ImageFont.load_default(64))
    written = io.BytesIO()
    image.save(written, "PNG")
    return written.getvalue()
