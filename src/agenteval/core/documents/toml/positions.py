"""Finds the line of every key of a TOML file, which the standard library's parser does not record."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field

from agenteval.core.documents.document import KeyPath

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*'""")
_DOT = re.compile(r"[ \t]*\.[ \t]*")
_EQUALS = re.compile(r"[ \t]*=[ \t]*")
_STRING = re.compile(
    r'''"""(?:\\.|(?!""")[^\\])*"{3,5}'''
    r"""|'''(?:(?!''').)*'{3,5}"""
    r"""|"(?:\\.|[^"\\\n])*"|'[^'\n]*'""",
    re.DOTALL,
)
_BARE = re.compile(r"\d{4}-\d\d-\d\d[ Tt]\d[^\s,\]}#]*|[^\s,\]}#]+")
_ESCAPE = re.compile(r'\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[btnfr"\\])')
_ESCAPED = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}

_Path = tuple[str | int, ...]


@dataclass(frozen=True)
class TomlPositions:
    """The positions of a file, made by ``find_positions``.

    Attributes:
        lines: the line of every key, table and list entry.
        texts: where the source text of each text begins and ends, with its quotes.
    """

    lines: dict[_Path, int]
    texts: dict[_Path, tuple[int, int]] = field(default_factory=dict)

    def line(self, path: KeyPath) -> int | None:
        """Return the line of a key, or of the nearest parent that exists."""
        steps = tuple(path)
        for end in range(len(steps), 0, -1):
            if steps[:end] in self.lines:
                return self.lines[steps[:end]]
        return None

    def source_text(self, path: KeyPath) -> str | None:  # noqa: ARG002 - what a document asks for
        """Return ``None``: TOML quotes every text, so source texts are not needed."""
        return None


def find_positions(text: str) -> TomlPositions:
    """Return the line of every key, table and list entry.

    Args:
        text: valid TOML.
    """
    return _Scanner(text).scan()


class _Scanner:
    """Scans a valid text once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self._lines: dict[_Path, int] = {}
        self._texts: dict[_Path, tuple[int, int]] = {}
        self._entries: dict[_Path, int] = {}

    def scan(self) -> TomlPositions:
        table: _Path = ()
        self._skip(_SPACE)
        while self._at < len(self._text):
            if self._text.startswith("[[", self._at):
                table = self._header(2)
            elif self._text[self._at] == "[":
                table = self._header(1)
            else:
                self._pair(table)
            self._skip(_SPACE)
        return TomlPositions(self._lines, self._texts)

    def _header(self, brackets: int) -> _Path:
        """Read ``[a.b]``, or ``[[a.b]]``, which adds an entry to a list."""
        start = self._at
        self._at += brackets
        self._skip(_SPACE)
        keys = self._keys()
        self._skip(_SPACE)
        self._at += brackets
        path: _Path = ()
        for key in keys[:-1]:
            path = (*path, key)
            self._note(path, start)
            path = self._newest(path)
        path = (*path, keys[-1])
        self._note(path, start)
        if brackets == 2:
            self._entries[path] = self._entries.get(path, -1) + 1
            path = self._newest(path)
            self._note(path, start)
        return path

    def _newest(self, path: _Path) -> _Path:
        """Resolve the name of a list of tables to its last entry."""
        return (*path, self._entries[path]) if path in self._entries else path

    def _pair(self, table: _Path) -> None:
        start = self._at
        path = table
        for key in self._keys():
            path = (*path, key)
            self._note(path, start)
        self._skip(_EQUALS)
        self._value(path)

    def _value(self, path: _Path) -> None:
        opening = self._text[self._at]
        if opening == "[":
            self._list(path)
        elif opening == "{":
            self._inline_table(path)
        elif opening in "\"'":
            start = self._at
            self._skip(_STRING)
            self._texts[path] = (start, self._at)
        else:
            self._skip(_BARE)

    def _list(self, path: _Path) -> None:
        self._at += 1
        self._skip(_SPACE)
        index = 0
        while self._text[self._at] != "]":
            entry = (*path, index)
            self._note(entry, self._at)
            self._value(entry)
            index += 1
            self._comma()
        self._at += 1

    def _inline_table(self, path: _Path) -> None:
        self._at += 1
        self._skip(_SPACE)
        while self._text[self._at] != "}":
            self._pair(path)
            self._comma()
        self._at += 1

    def _comma(self) -> None:
        self._skip(_SPACE)
        if self._text[self._at] == ",":
            self._at += 1
            self._skip(_SPACE)

    def _keys(self) -> list[str]:
        keys = [self._key()]
        while (dot := _DOT.match(self._text, self._at)) is not None:
            self._at = dot.end()
            keys.append(self._key())
        return keys

    def _key(self) -> str:
        written = self._skip(_KEY)
        if written.startswith('"'):
            return _ESCAPE.sub(_unescaped, written[1:-1])
        return written[1:-1] if written.startswith("'") else written

    def _skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise ValueError(f"not valid TOML at character {self._at}")
        self._at = match.end()
        return match.group()

    def _note(self, path: _Path, start: int) -> None:
        # The first occurrence is recorded; a table may continue later in the file.
        self._lines.setdefault(path, bisect_right(self._breaks, start - 1) + 1)


def _unescaped(match: re.Match[str]) -> str:
    code = match.group(1)
    return _ESCAPED.get(code) or chr(int(code[1:], 16))
