"""The pictures of the documentation are what the code draws, and are readable without sight and without scripts."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

import pytest
from scripts.pictures import gallery, gate, shown
from scripts.pictures.__main__ import FOLDER, NAMES

ROOT = Path(__file__).parents[3]
_SVG = "{http://www.w3.org/2000/svg}"
_ELEMENTS = {"svg", "title", "desc", "style", "rect", "circle", "path", "text"}
# Drawn again here; `tests/end_to_end/test_pictures.py` draws the others, from a real run.
_DRAWN = {**gate.PICTURES, **gallery.PICTURES}
# These have texts of fixed lengths, and a file for each theme.
_LAID_OUT = sorted(name for name in NAMES if name.endswith(("-light", "-dark")))
_LOOSE = sorted(NAMES - set(_LAID_OUT))


@pytest.mark.parametrize("name", list(_DRAWN))
def test_a_picture_is_what_the_code_draws(name: str) -> None:
    assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == _DRAWN[name](), "run: make pictures"


def test_there_are_no_others() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == NAMES
    assert set(_DRAWN) | set(shown.PICTURES) == NAMES


def _root(name: str) -> ElementTree.Element:
    return ElementTree.parse(FOLDER / f"{name}.svg").getroot()


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_picture_is_for_everybody(name: str) -> None:
    root = _root(name)
    assert root.tag == f"{_SVG}svg"
    assert {"title", "desc"} <= set((root.get("aria-labelledby") or "").split())
    for part in ("title", "desc"):
        element = root.find(f"{_SVG}{part}")
        assert element is not None
        assert (element.text or "").strip()
    assert {element.tag.removeprefix(_SVG) for element in root.iter()} <= _ELEMENTS
    text = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    # Nothing is loaded, and nothing runs.
    assert (
        re.findall(
            r"(?i)(?:href|src|url\(|@import|\son\w+=|javascript:)",
            re.sub(r"<text.*?</text>|<desc.*?</desc>", "", text),
        )
        == []
    )


@pytest.mark.parametrize("name", _LOOSE)
def test_a_picture_for_both_themes_has_room_for_its_texts(name: str) -> None:
    root = _root(name)
    assert "prefers-color-scheme: dark" in ElementTree.tostring(root, encoding="unicode")
    width = float((root.get("viewBox") or "").split()[2])
    for text in root.iter(f"{_SVG}text"):
        # A character of this font is about 8 units wide.
        length, x = 8.2 * len(text.text or ""), float(text.get("x") or 0)
        left = {"start": x, "middle": x - length / 2, "end": x - length}[text.get("text-anchor") or "start"]
        assert left >= 0, text.text
        assert left + length <= width, text.text


@pytest.mark.parametrize("name", _LAID_OUT)
def test_texts_lie_inside_of_a_picture_and_never_on_each_other(name: str) -> None:
    root = _root(name)
    _, _, width, height = map(float, (root.get("viewBox") or "").split())
    lines: dict[float, list[tuple[float, float, str]]] = defaultdict(list)
    for text in root.iter(f"{_SVG}text"):
        x, y, length = (float(text.get(key) or "nan") for key in ("x", "y", "textLength"))
        assert 0 <= x <= x + length <= width, text.text
        assert 0 < y < height, text.text
        lines[round(y)].append((x, x + length, text.text or ""))
    for line in lines.values():
        line.sort()
        for (_, end, left), (start, _, right) in itertools.pairwise(line):
            assert end <= start + 0.5, (left, right)


def test_light_and_dark_show_the_same() -> None:
    for name in _LAID_OUT:
        if name.endswith("-light"):
            both = ["".join(_root(theme).itertext()) for theme in (name, name.replace("-light", "-dark"))]
            assert both[0] == both[1], name


def test_a_page_shows_every_picture_with_an_alternative_text() -> None:
    pages = "\n".join(
        path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    )
    in_markdown = set(re.findall(r"!\[[^\]]+\]\(pictures/([\w-]+)\.svg\)", pages))
    in_html = re.findall(
        r'<picture>\s*<source media="\(prefers-color-scheme: dark\)" '
        r'srcset="(?:docs/)?pictures/([\w-]+)-dark\.svg">\s*'
        r'<img alt="[^"]+" src="(?:docs/)?pictures/([\w-]+)-light\.svg"[^>]*>\s*</picture>',
        pages,
    )
    assert [dark for dark, light in in_html if dark != light] == []
    assert pages.count("<picture>") == len(in_html)
    assert in_markdown | {f"{name}-{theme}" for name, _ in in_html for theme in ("light", "dark")} == NAMES
