"""Finds the items of a long YAML list by its lines alone, so that it can be read piece by piece.

Nothing is parsed here. Whoever parses the pieces sees whether each is the list that it should be; where one is not,
a text only looked like a list (it may stand in quotes that go over many lines), and must be read as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agenteval.suite.yaml_shape import OTHER_BREAKS

# Below that (characters) a text is read as a whole.
_LONG = 250_000
_ITEMS = 500
_COMMENTS = re.compile(r"(?: *(?:#.*)?\n)*")
# A document may begin with a marker; behind it, markers would begin another one.
_START = re.compile(rf"{_COMMENTS.pattern}(?:--- *\n)?")
_MARKER = re.compile(r"^(?:---|\.\.\.|%)", re.MULTILINE)
_FIRST_ITEM = re.compile(r"( *)-(?: |\n)")


@dataclass(frozen=True, slots=True)
class Piece:
    """Some items of a list.

    Attributes:
        text: of nothing but these items.
        line: the first one's, from 0.
        items: their numbers in the list.
    """

    text: str
    line: int
    items: range


@dataclass(frozen=True)
class LongList:
    """A text with a list that has lines of its own.

    Attributes:
        key: under which the list stands; ``None`` where it is all there is.
        frame: the text with empty lines in place of the list.
    """

    key: str | None
    frame: str
    _text: str
    _starts: tuple[int, ...]
    _end: int

    def pieces(self) -> Iterator[Piece]:
        """The list, so many items at a time."""
        line, counted = 0, 0
        for first in range(0, len(self._starts), _ITEMS):
            starts = self._starts[first : first + _ITEMS]
            last = first + len(starts)
            end = self._starts[last] if last < len(self._starts) else self._end
            line += self._text.count("\n", counted, starts[0])
            counted = starts[0]
            yield Piece(self._text[starts[0] : end], line, range(first, last))


def long_list(text: str, key: str) -> LongList | None:
    """The list of a long text, at its top or under a key of its top level.

    Args:
        text: without anchors, aliases and tags, which would tie the pieces together.
        key: where the list stands, if it is not all there is.

    Returns:
        ``None`` where the text is not long, or its lines do not tell where the list is.
    """
    if len(text) < _LONG or OTHER_BREAKS.search(text):
        return None
    heads = list(re.finditer(rf"^{key}:[ ]*(?:#.*)?\n", text, re.MULTILINE))
    if len(heads) > 1:
        return None
    start = _end(_START, text, 0)
    begin = _end(_COMMENTS, text, heads[0].end() if heads else start)
    first = _FIRST_ITEM.match(text, begin)
    if first is None:
        return None
    indent = first[1]
    end = _end_of_list(text, begin, indent)
    item = re.compile(rf"^{indent}-(?: |\n)", re.MULTILINE)
    starts = tuple(found.start() for found in item.finditer(text, begin, end))
    frame = text[:begin] + "\n" * text.count("\n", begin, end) + text[end:]
    if _MARKER.search(frame, start):
        return None
    return LongList(key if heads else None, frame, text, starts, end)


def _end(pattern: re.Pattern[str], text: str, begin: int) -> int:
    """Where what a pattern matches ends."""
    found = pattern.match(text, begin)
    return found.end() if found else begin


def _end_of_list(text: str, begin: int, indent: str) -> int:
    """Where a line begins that is none of the list's: one that stands further left, or beside it and is no item."""
    left = "|".join(f"[ ]{{{width}}}(?![ #\n])" for width in range(len(indent)))
    outside = rf"^(?:{left}{'|' if left else ''}{indent}(?!-[ \n]|[ #\n]))"
    found = re.compile(outside, re.MULTILINE).search(text, begin)
    return found.start() if found else len(text)
