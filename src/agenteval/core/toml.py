"""Reads TOML files."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from datetime import date, time
from pathlib import Path
from typing import Any

from agenteval.core.document import Document, KeyPath, KeyPatterns, Positions, TextPlace, Variables, read_text
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.records import dataclass, field

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
    """Return the line of every key, table and list entry."""
    return _Scanner(text).scan()


class _Scanner:
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


_MOST_PARTS = 200

# For each part of a key, the parser copies all earlier parts.
_LONG_KEY = re.compile(
    rf"""(?<![\w-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){{{_MOST_PARTS}}}""",
)


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a TOML text.

    Raises:
        ValueError: it is not TOML (``tomllib.TOMLDecodeError``), or has a key of hundreds of parts.
        RecursionError: it is nested too deeply.
    """
    found = _LONG_KEY.search(text)
    if found:
        line = text.count("\n", 0, found.start()) + 1
        raise tomllib.TOMLDecodeError(
            f"a key is nested too deeply: more than {_MOST_PARTS:,} names joined by dots (at line {line}, column 1)"
        )
    return tomllib.loads(text)


_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")

_OWN_WORDS = {
    "Cannot declare": "this table already exists",
    "Cannot overwrite a value": "this key already has a value",
    "Cannot mutate immutable namespace": "this adds to a table that is complete: {…} cannot be extended",
    "Invalid initial character for a key part": "a key or } is expected here",
    "Unescaped '\\' in a string": "a backslash begins an escape, and this is not a valid one",
    "Illegal character '\\n'": "the text that begins here has no closing quote",
    "Invalid value": "this is not a value; a text needs quotes",
    "Invalid hex value": "a backslash begins an escape, and this is not a valid one",
    "Unterminated string": "a text that begins further up has no closing quotes",
}

_DECLARED_TWICE = re.compile(r"Cannot declare \((.*)\) twice")

# A key and its value, for the hints.
_PAIR = re.compile(r"\s*([\w.\"'-]+)\s*=\s*(.*)")

_ADVICE_ON_BACKSLASHES = "write patterns in '''…''', where a backslash is a plain character: match = '''^\\d+$'''"

# Message of the parser, pattern of the line, and the hint.
_ADVICE = (
    (r"Invalid initial", r",\s*\}", "remove the comma before the }"),
    (r"Unescaped|Invalid hex", r"", _ADVICE_ON_BACKSLASHES),
    (r"Invalid value", r"=\s*(True|False)\b", "it is written in lower case: true, false"),
    (r"Invalid value", r"=\s*(null|None|nil)\b", "TOML has no null: leave the key out"),
    (r"Invalid value", r"[“”‘’]", 'the quotes must be straight: "…"'),
    (r"Expected '='", r":", "write = before the value: key = value"),
    (r"Expected newline", r'"', 'write a quote inside "…" as \\"'),
)


def read_toml(
    path: Path,
    *,
    shown_as: str | None = None,
    environment: Mapping[str, str] | None = None,
    unset: list[Problem] | None = None,
    credentials: Iterable[str] = (),
) -> Document:
    """Read one TOML file."""
    name = shown_as or str(path)
    text = read_text(path, name).replace("\r\n", "\n")
    try:
        data = parse_toml(text)
        positions = find_positions(text)
        variables = Variables(name, environment)
        data = _replaced(data, (), KeyPatterns.of(credentials), variables, positions)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_toml_problem(name, text, error)) from None
    except RecursionError:
        raise ConfigError(Problem("not valid TOML: nested too deeply", file=name, kind=Kind.SYNTAX)) from None
    except ValueError as error:
        # The parser also raises errors of Python's limits, such as the number of digits.
        raise ConfigError(Problem(f"not valid TOML: {error}", file=name, kind=Kind.SYNTAX)) from None
    variables.report(unset)
    return Document(
        file=name,
        directory=path.resolve().parent,
        data=data,
        secrets=frozenset(variables.secrets),
        positions=positions,
    )


def _replaced(value: Any, path: KeyPath, credentials: KeyPatterns, variables: Variables, positions: Positions) -> Any:
    if isinstance(value, str):
        if "${" not in value:
            return value
        return variables.replace(value, positions.line(path), TextPlace(tuple(path), credentials.match))

    def below(step: str | int, item: Any) -> Any:
        return _replaced(item, (*path, step), credentials.after(step), variables, positions)

    if isinstance(value, dict):
        return {key: below(key, item) for key, item in value.items()}
    if isinstance(value, list):
        return [below(index, item) for index, item in enumerate(value)]
    # Values may be sent to an agent as JSON, which has no dates.
    return value.isoformat() if isinstance(value, date | time) else value


def _toml_problem(name: str, text: str, error: tomllib.TOMLDecodeError) -> Problem:
    said = str(error)
    place = _PLACE.search(said)
    lines = text.split("\n")
    last = len(text.rstrip().split("\n"))
    line = int(place.group(1)) if place and place.group(1) else last
    said = _PLACE.sub("", said)
    written = lines[line - 1] if line <= len(lines) else ""
    words = next((own for theirs, own in _OWN_WORDS.items() if said.startswith(theirs)), said)
    hint = _hint(said, written, lines[: line - 1])
    return Problem(
        f"not valid TOML: {words}" + (f"\n  {hint}" if hint else ""), file=name, line=line, kind=Kind.SYNTAX
    )


def _hint(said: str, written: str, above: list[str]) -> str:
    declared = _DECLARED_TWICE.search(said)
    if declared:
        return _declared_twice([part.strip(" '\"") for part in declared.group(1).split(",") if part.strip()], above)
    pair = _PAIR.match(written)
    if pair and said.startswith(("Cannot overwrite", "Cannot mutate")):
        return _given_twice(pair.group(1), written.strip(), above)
    for says, looks, advice in _ADVICE:
        if re.match(says, said) and re.search(looks, written):
            return advice
    opened = next((line for line in reversed([*above, written]) if _opens_table(line)), None)
    if opened is not None and said.startswith(("Invalid initial", "Unclosed inline", "Expected")):
        key = opened.partition("=")[0].strip()
        table = f"for several lines, write a table: [….{key}] with one key = value per line"
        return f"{{…}} must be on one line; {table}"
    return ""


def _opens_table(line: str) -> bool:
    """Return whether a ``{`` of the line is closed on a later line."""
    bare = re.sub(r'"[^"]*"|\'[^\']*\'|#.*', "", line)
    return bare.count("{") > bare.count("}")


def _given_twice(key: str, written: str, above: list[str]) -> str:
    root, _, inner = key.partition(".")
    earlier = next((line.strip() for line in reversed(above) if re.match(rf"\s*{re.escape(root)}[\s.=]", line)), None)
    if earlier is None:
        return ""
    complete = re.fullmatch(rf"({re.escape(root)}\s*=\s*\{{.*?),?\s*\}}", _bare(earlier))
    if inner and complete:
        value = written.partition("=")[2].strip()
        return f"put it inside: {complete.group(1)}, {inner} = {_bare(value)} }}"
    keep = f"keep one of the two: {_bare(earlier)}   or   {_bare(written)}"
    return f"{keep}; a further [[eval.cases]] takes the other"


def _declared_twice(keys: list[str], above: list[str]) -> str:
    """Return the hint for an inline table that is extended, or a table that is declared twice."""
    listed = f"[[{'.'.join(keys)}]]"
    if any(line.strip().startswith(listed) for line in above):
        return f"each one begins with {listed}"
    for end in range(len(keys), 0, -1):
        key = keys[end - 1]
        for line in reversed(above):
            pair = _PAIR.match(line)
            if pair and pair.group(1) == key and pair.group(2).startswith("{"):
                table, inner = ".".join(keys[:end]), pair.group(2).strip().strip("{}").strip()
                complete = f"{_bare(line.strip())} is complete and cannot be extended"
                return f"{complete}; write it as a table:\n    [{table}]\n    {inner}"
    return "a table can be declared only once; move its keys to the first declaration"


def _bare(line: str) -> str:
    return re.sub(r"""("[^"]*"|'[^']*')|\s*#.*$""", lambda match: match.group(1) or "", line)
