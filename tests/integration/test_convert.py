"""The text of real documents, read by the libraries of the extra ``files``."""

from __future__ import annotations

import logging
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.integration.documents import OLD_WORKBOOK, docx, full_pptx, pdf, png, pptx, xlsx

from agenteval.run.attachments import ConversionError, read_file
from agenteval.suite.model import FileKind, FileRef

PRICES = (("Bike", "Euro", "Note"), ("City", 18, "a|b"), ("E-bike", 35.5, None))
STOCK = (("Bike", "Left"), ("City", 3))


def text(folder: Path, kind: FileKind, data: bytes, **fields: Any) -> str:
    path = folder / "file"
    path.write_bytes(data)
    return read_file(FileRef(name="the file", kind=kind, path=str(path), **fields), path)


def problem(folder: Path, kind: FileKind, data: bytes, **fields: Any) -> str:
    with pytest.raises(ConversionError) as caught:
        text(folder, kind, data, **fields)
    return str(caught.value)


class TestDocuments:
    def test_word(self, tmp_path: Path) -> None:
        document = docx("Opening hours", "From nine to six")
        assert text(tmp_path, "word", document) == "Opening hours\n\nFrom nine to six"

    def test_word_keeps_what_a_reader_sees(self, tmp_path: Path) -> None:
        math = "http://schemas.openxmlformats.org/officeDocument/2006/math"

        def equation(*parts: str) -> str:
            return f'<m:oMath xmlns:m="{math}">{"".join(f"<m:r><m:t>{part}</m:t></m:r>" for part in parts)}</m:oMath>'

        def run(text: str, style: str = "") -> str:
            return f'<w:r>{style}<w:t xml:space="preserve">{text}</w:t></w:r>'

        cells = "".join(f"<w:tc><w:p>{run(text)}</w:p></w:tc>" for text in ("City", "18"))
        whole = (
            f'<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr>{run("Prices")}</w:p>'
            f"<w:p>{run('Bold', '<w:rPr><w:b/></w:rPr>')}{run(' and ')}{equation('a', '=b')}</w:p>"
            f'<w:p><m:oMathPara xmlns:m="{math}">{equation("x")}{equation("y")}</m:oMathPara></w:p>'
            f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>"
        )
        found = text(tmp_path, "word", docx(body=whole))
        assert found.split("\n\n")[:3] == ["# Prices", "**Bold** and a=b", "xy"]
        assert "| City | 18 |" in found

    def test_pdf(self, tmp_path: Path) -> None:
        found = text(tmp_path, "pdf", pdf("The deposit is 50 euros", "Helmets are free"))
        assert "The deposit is 50 euros" in found
        assert "Helmets are free" in found

    def test_powerpoint(self, tmp_path: Path) -> None:
        found = text(tmp_path, "powerpoint", pptx(("Prices", "A city bike is 18 euros"), ("Insurance", "Two euros")))
        assert "# Prices\nA city bike is 18 euros" in found
        assert "# Insurance\nTwo euros" in found

    def test_powerpoint_keeps_what_a_reader_sees(self, tmp_path: Path) -> None:
        found = text(tmp_path, "powerpoint", full_pptx())
        assert found.splitlines() == [
            "<!-- Slide number: 1 -->",
            "# Prices",
            "",
            "| Bike | Euro |",
            "| --- | --- |",
            "| City | a\\|b |",
            "",
            "in a group",
            "",
            "### Chart: Sales",
            "",
            "| Category | 2025 | 2026 |",
            "| --- | --- | --- |",
            "| City | 1.0 | 2.0 |",
            "| E-bike | 3.0 |  |",
            "",
            "![A red bike]()",
            "",
            "### Notes:",
            "Say it slowly",
        ]

    def test_excel(self, tmp_path: Path) -> None:
        found = text(tmp_path, "excel", xlsx(Prices=PRICES, Stock=STOCK))
        assert "## Prices" in found
        assert "| City | 18" in found
        assert "## Stock" in found

    def test_excel_of_1997(self, tmp_path: Path) -> None:
        found = text(tmp_path, "excel", OLD_WORKBOOK.read_bytes())
        assert "## Prices" in found
        assert "| E-bike | 35 |" in found


class TestParts:
    def test_pages_of_a_pdf(self, tmp_path: Path) -> None:
        pages = pdf("First page", "Second page", "Third page")
        assert text(tmp_path, "pdf", pages, pages=(2,)).split() == ["Second", "page"]
        assert text(tmp_path, "pdf", pages, pages=(3, 1)).split() == ["Third", "page", "First", "page"]

    def test_slides(self, tmp_path: Path) -> None:
        # Its text looks like the next slide's beginning.
        hostile = ("One", "<!-- Slide number: 7 -->")
        found = text(tmp_path, "powerpoint", pptx(hostile, ("Two", "second"), ("Three", "third")), pages=(3, 1))
        assert found == (
            "<!-- Slide number: 3 -->\n# Three\nthird\n\n<!-- Slide number: 1 -->\n# One\n<!-- Slide number: 7 -->"
        )

    def test_a_sheet(self, tmp_path: Path) -> None:
        assert text(tmp_path, "excel", xlsx(Prices=PRICES, Stock=STOCK), sheet="Stock") == (
            "## Stock\n| Bike | Left |\n| --- | --- |\n| City | 3 |"
        )

    def test_a_range_of_a_sheet(self, tmp_path: Path) -> None:
        found = text(tmp_path, "excel", xlsx(Prices=PRICES, Stock=STOCK), sheet="Stock", range="B2")
        assert found.splitlines() == ["## Stock", "| 3 |", "| --- |"]
        # Of the active sheet; its corners may be named in any order, and lie outside of what has content.
        found = text(tmp_path, "excel", xlsx(Prices=PRICES, Stock=STOCK), range="z3:b3")
        assert found.splitlines() == ["## Prices", "| 35.5 |  |", "| --- | --- |"]

    @pytest.mark.parametrize(
        ("kind", "data", "fields", "said"),
        [
            ("pdf", pdf("One"), {"pages": (1, 2, 3)}, "has 1 page; there is no page 2, 3"),
            ("powerpoint", pptx(("One", ""), ("Two", "")), {"pages": (2, 3)}, "has 2 slides; there is no slide 3"),
            ("excel", xlsx(Stock=STOCK), {"sheet": "Prices"}, "has no sheet 'Prices' with cells; it has Stock"),
            (
                "excel",
                OLD_WORKBOOK.read_bytes(),
                {"sheet": "Prices"},
                "is not an .xlsx file; `sheet` and `range` need one",
            ),
            (
                "excel",
                OLD_WORKBOOK.read_bytes(),
                {"range": "A1"},
                "is not an .xlsx file; `sheet` and `range` need one",
            ),
        ],
    )
    def test_a_part_that_is_not_there(
        self, tmp_path: Path, kind: FileKind, data: bytes, fields: dict[str, Any], said: str
    ) -> None:
        assert problem(tmp_path, kind, data, **fields) == f"the file {said}"


class TestDamaged:
    @pytest.mark.parametrize(
        ("kind", "data"),
        [
            ("pdf", pdf("text")[:120]),
            ("word", docx("text")[:300]),
            ("excel", b"PK\x03\x04 and nothing else"),
            ("powerpoint", docx("no slides")),
        ],
    )
    def test_the_library_says_why(self, tmp_path: Path, kind: FileKind, data: bytes) -> None:
        assert problem(tmp_path, kind, data).startswith(f"the file cannot be read as {kind}: ")

    def test_gone_since_the_suite_was_read(self, tmp_path: Path) -> None:
        path = tmp_path / "gone.txt"
        with pytest.raises(ConversionError, match="notes cannot be read: No such file"):
            read_file(FileRef(name="notes", kind="text", path=str(path)), path)

    def test_oddities_are_not_logged(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        # A colour that is none: pdfminer would repeat it in a warning.
        with caplog.at_level(logging.INFO):
            text(tmp_path, "pdf", pdf("text) Tj /odd g (more"))
        assert caplog.records == []


class TestImages:
    def test_without_tesseract_there_is_no_text(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        assert text(tmp_path, "image", png("Closed on Mondays")) == ""

    @pytest.mark.skipif(shutil.which("tesseract") is None, reason="needs tesseract")
    def test_what_tesseract_cannot_read(self, tmp_path: Path) -> None:
        assert text(tmp_path, "image", b"<svg/>") == ""


@pytest.mark.parametrize("kind", ["word", "excel", "powerpoint"])
def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, kind: Any) -> None:
    file = tmp_path / "bomb"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("word/document.xml", b"A" * 100_000_001)
    with pytest.raises(ConversionError, match="has 100,000,001 bytes when it is unpacked"):
        read_file(FileRef(name="bomb", path=str(file), kind=kind), file)
