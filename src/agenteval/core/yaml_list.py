"""Reads a long list of a YAML file in parts, so that memory never contains all of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from agenteval.core.document import Document, KeyPath, KeyPatterns, Positions
from agenteval.core.errors import AgentEvalError, ConfigError, Problem
from agenteval.core.records import dataclass, replace
from agenteval.core.yaml import OTHER_BREAKS, is_tied, parse_yaml, sealed_text

# Shorter texts (in characters) are read as a whole.
_LONG = 250_000

_ITEMS = 500

_COMMENTS = re.compile(r"(?: *(?:#.*)?\n)*")

# A document may begin with a marker; a second marker would begin another document.
_START = re.compile(rf"{_COMMENTS.pattern}(?:--- *\n)?")

_MARKER = re.compile(r"^(?:---|\.\.\.|%)", re.MULTILINE)

_FIRST_ITEM = re.compile(r"( *)-(?: |\n)")


@dataclass(frozen=True)
class ListPiece:
    """Some items of a list.

    Attributes:
        line: line of the first item, from 0.
    """

    text: str
    line: int
    items: range


@dataclass(frozen=True)
class LongList:
    """A text with a list in block style.

    Attributes:
        key: the key of the list; ``None`` if the document is the list.
    """

    key: str | None
    frame: str
    _text: str
    _starts: tuple[int, ...]
    _end: int

    def pieces(self) -> Iterator[ListPiece]:
        """Yield the list in pieces."""
        line, counted = 0, 0
        for first in range(0, len(self._starts), _ITEMS):
            starts = self._starts[first : first + _ITEMS]
            last = first + len(starts)
            end = self._starts[last] if last < len(self._starts) else self._end
            line += self._text.count("\n", counted, starts[0])
            counted = starts[0]
            yield ListPiece(self._text[starts[0] : end], line, range(first, last))


def long_list(text: str, key: str) -> LongList | None:
    """Find the list of a long text, at its top or under a top-level key.

    Args:
        text: a text without anchors, aliases and tags, which would connect the pieces.
        key: the key of the list; default: the document is the list.

    Returns:
        ``None`` if the text is short, or its lines do not show where the list is.
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
    found = pattern.match(text, begin)
    return found.end() if found else begin


def _end_of_list(text: str, begin: int, indent: str) -> int:
    """Return the start of the first line after the list: a line with less indentation, or an equally indented line
    that is not an item."""
    left = "|".join(f"[ ]{{{width}}}(?![ #\n])" for width in range(len(indent)))
    outside = rf"^(?:{left}{'|' if left else ''}{indent}(?!-[ \n]|[ #\n]))"
    found = re.compile(outside, re.MULTILINE).search(text, begin)
    return found.start() if found else len(text)


class NotInPartsError(AgentEvalError):
    """The file is not a plain long list, so it must be read as a whole."""


@dataclass(frozen=True)
class ListPart:
    """Some items of a list, in a document with the indices and lines of the file."""

    document: Document
    items: range


@dataclass(frozen=True)
class ListInFile:
    """A file and the list in it.

    Attributes:
        document: the file; a list that is read in parts is empty in it.
        parts: the items, an iterator; the document of each part has its warnings and secrets.
    """

    document: Document
    at: KeyPath
    parts: Iterable[ListPart]


class ReadList(Protocol):
    """The type of ``read_in_parts`` and ``read_whole``."""

    def __call__(
        self, path: Path, key: str, *, shown_as: str, unset: list[Problem], credentials: KeyPatterns
    ) -> ListInFile:
        """Read a file with a list."""
        ...


def read_whole(path: Path, key: str, *, shown_as: str, unset: list[Problem], credentials: KeyPatterns) -> ListInFile:
    """Read a file with a list, at its top or under a key.

    Args:
        key: the key of the list; default: the file is the list.

    Raises:
        ConfigError: as of ``read_yaml``.
    """
    text = sealed_text(path, shown_as)
    return _whole(parse_yaml(text, shown_as, path.resolve().parent, unset=unset, credentials=credentials), key)


def read_in_parts(
    path: Path, key: str, *, shown_as: str, unset: list[Problem], credentials: KeyPatterns
) -> ListInFile:
    """Read like ``read_whole``, but a long list one part at a time.

    Raises:
        NotInPartsError: raised here or while the parts are read; only ``read_whole`` can read the file.
    """
    text = sealed_text(path, shown_as)
    directory = path.resolve().parent
    found = None if is_tied(text) else long_list(text, key)
    if found is None:
        return _whole(parse_yaml(text, shown_as, directory, unset=unset, credentials=credentials), key)
    frame = _parsed(found.frame, shown_as, directory, unset=unset, credentials=credentials)
    at = () if found.key is None else (key,)
    rest = frame.data if found.key is None else frame.data.get(key, "") if isinstance(frame.data, dict) else ""
    # The key of the list may occur a second time.
    if rest is not None or frame.warnings:
        raise NotInPartsError(f"{shown_as} has lines beside its list")
    return ListInFile(frame, at, _parts(found, at, frame, unset, credentials))


def _whole(document: Document, key: str) -> ListInFile:
    at = (key,) if isinstance(document.data, dict) and key in document.data else ()
    listed = document.data[key] if at else document.data
    if not isinstance(listed, list):
        return ListInFile(document, at, ())
    # Warnings about the file are reported once.
    part = ListPart(replace(document, warnings=(), secrets=frozenset()), range(len(listed)))
    return ListInFile(document, at, [part])


def _parts(
    found: LongList, at: KeyPath, frame: Document, unset: list[Problem], credentials: KeyPatterns
) -> Iterator[ListPart]:
    for piece in found.pieces():
        yield ListPart(_document(piece, at, frame, unset, credentials), piece.items)


def _document(
    piece: ListPiece, at: KeyPath, frame: Document, unset: list[Problem], credentials: KeyPatterns
) -> Document:
    part = _parsed(
        piece.text,
        frame.file,
        frame.directory,
        unset=unset,
        credentials=credentials,
        first_line=piece.line,
        at=at,
        first_item=piece.items.start,
    )
    if not isinstance(part.data, list) or len(part.data) != len(piece.items):
        raise NotInPartsError(f"{frame.file} has a line that only looks like an item")
    items: Any = dict(zip(piece.items, part.data, strict=True))
    for step in reversed(at):
        items = {step: items}
    positions = _PartPositions(part.positions, len(at), piece.items.start) if part.positions else None
    return replace(part, data=items, positions=positions)


def _parsed(text: str, name: str, directory: Path, **options: Any) -> Document:
    try:
        return parse_yaml(text, name, directory, **options)
    except ConfigError:
        # The message would differ from the one for the whole file.
        raise NotInPartsError(f"{name} cannot be read in parts") from None


@dataclass(frozen=True)
class _PartPositions:
    own: Positions
    depth: int
    first: int

    def line(self, path: KeyPath) -> int | None:
        """Return the 1-based line of a key, or of the nearest parent that exists."""
        return self.own.line(self._inside(path))

    def source_text(self, path: KeyPath) -> str | None:
        """Return the source text of a scalar."""
        return self.own.source_text(self._inside(path))

    def _inside(self, path: KeyPath) -> KeyPath:
        steps = list(path[self.depth :])
        return [int(steps[0]) - self.first, *steps[1:]] if steps else []
