"""Reads TOML files."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from datetime import date, time
from pathlib import Path
from typing import Any

from agenteval.core.documents.allowed import KeyPatterns, Place
from agenteval.core.documents.document import Document, KeyPath, Positions, Variables, read_text
from agenteval.core.documents.toml.positions import find_positions
from agenteval.core.errors import ConfigError, Kind, Problem

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
    """Read one TOML file.

    Args:
        path: the file.
        shown_as: its name in messages; the path itself if not given.
        environment: the variables for ``${VAR}``; default: the process environment.
        unset: receives problems with variables, so that they are reported together with other problems.
        credentials: patterns of the keys that take credentials.

    Raises:
        ConfigError: the file is unreadable, not TOML, or uses unset variables (all are reported).
    """
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
    """Return the value with the variables in its texts replaced."""
    if isinstance(value, str):
        if "${" not in value:
            return value
        return variables.replace(value, positions.line(path), Place(tuple(path), credentials.match))

    def below(step: str | int, item: Any) -> Any:
        return _replaced(item, (*path, step), credentials.after(step), variables, positions)

    if isinstance(value, dict):
        return {key: below(key, item) for key, item in value.items()}
    if isinstance(value, list):
        return [below(index, item) for index, item in enumerate(value)]
    # Values may be sent to an agent as JSON, which has no dates.
    return value.isoformat() if isinstance(value, date | time) else value


def _toml_problem(name: str, text: str, error: tomllib.TOMLDecodeError) -> Problem:
    """Return the parser's message with a hint for the most frequent mistakes."""
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
    """Return a line without its comment."""
    return re.sub(r"""("[^"]*"|'[^']*')|\s*#.*$""", lambda match: match.group(1) or "", line)
