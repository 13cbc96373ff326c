"""The width of texts on a terminal, and lines of a given width.

Characters of East Asian scripts and emoji take two cells; combining and invisible ones take none.
"""

from __future__ import annotations

import re
import unicodedata

_WORD = re.compile(r"\S+")
_NO_CELL = frozenset({"Mn", "Me", "Cf"})
# The vowels and final consonants of decomposed Hangul, which join the syllable before them.
_JOINED_HANGUL = range(0x1160, 0x1200)


def width(text: str) -> int:
    """Return the number of cells that a text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_cells, text))


def wrapped(text: str, columns: int, *, first: int | None = None) -> list[str]:
    """Return a text in lines; see :func:`spans`."""
    return [text[start:end] for start, end in spans(text, columns, first=first)]


def spans(text: str, columns: int, *, first: int | None = None) -> list[tuple[int, int]]:
    """Return where the lines of a text begin and end.

    They break at blanks. Only a word that is wider than a line is broken inside.

    Args:
        text: one line.
        columns: cells of a line.
        first: cells that are left of the first line, if something precedes the text there.
    """
    found: list[tuple[int, int]] = []
    start, end, room = 0, 0, columns if first is None else first
    for word in _WORD.finditer(text):
        if width(text[start : word.end()]) <= room:
            end = word.end()
            continue
        if end > start or room < columns:
            found.append((start, end))
            start, room = word.start(), columns
        while (fits := _fitting(text, start, word.end(), room)) < word.end():
            found.append((start, fits))
            start = fits
        end = word.end()
    found.append((start, end))
    return found


def cut(text: str, columns: int) -> str:
    """Return the beginning of a text, with an ellipsis if something is missing, in a number of cells."""
    return text if width(text) <= columns else f"{text[: _fitting(text, 0, len(text), max(1, columns - 1))]}…"


def _fitting(text: str, start: int, end: int, columns: int) -> int:
    """Return the end of the part that fits from ``start`` on: at least one character with its combining ones."""
    taken = 0
    for index in range(start, end):
        cells = _cells(text[index])
        if taken + cells > columns and index > start:
            return index
        taken += cells
    return end


def _cells(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.category(character) in _NO_CELL or ord(character) in _JOINED_HANGUL:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
