"""The pictures of the documentation are what the code draws, and are readable without sight and without scripts."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from scripts.pictures.__main__ import FOLDER
from scripts.pictures.gate import PICTURES

ROOT = Path(__file__).parents[3]
_SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_what_the_code_draws(name: str) -> None:
    assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == PICTURES[name](), "run: make pictures"


def test_there_are_no_others() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(PICTURES)


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_for_everybody(name: str) -> None:
    root = ElementTree.parse(FOLDER / f"{name}.svg").getroot()
    assert root.tag == f"{_SVG}svg"
    assert {"title", "desc"} <= set((root.get("aria-labelledby") or "").split())
    for part in ("title", "desc"):
        element = root.find(f"{_SVG}{part}")
        assert element is not None
        assert (element.text or "").strip()
    tags = {element.tag.removeprefix(_SVG) for element in root.iter()}
    assert tags <= {"svg", "title", "desc", "style", "rect", "circle", "path", "text"}
    assert "prefers-color-scheme: dark" in ElementTree.tostring(root, encoding="unicode")
    width = float((root.get("viewBox") or "").split()[2])
    for text in root.iter(f"{_SVG}text"):
        # A character of this font is about 8 units wide.
        length, x = 8.2 * len(text.text or ""), float(text.get("x") or 0)
        left = {"start": x, "middle": x - length / 2, "end": x - length}[text.get("text-anchor") or "start"]
        assert left >= 0, text.text
        assert left + length <= width, text.text


def test_the_page_has_every_picture_with_an_alternative_text() -> None:
    page = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"!\[([^\]]+)\]\(pictures/([\w-]+)\.svg\)", page))
    assert set(shown.values()) == set(PICTURES)
