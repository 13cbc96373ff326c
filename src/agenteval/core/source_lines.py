"""The line of a file that a message quotes: without secrets and control characters, and cut to fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import islice
from pathlib import Path

from agenteval.core.errors import AgentEvalError
from agenteval.core.files.reading import open_regular
from agenteval.core.masking import mask
from agenteval.core.paths import repository_of, working_directory
from agenteval.core.secrets import is_secret_name
from agenteval.core.text.cells import width
from agenteval.core.text.escape import terminal

# Bytes of a file from which lines are quoted.
_LARGEST = 20_000_000
# Characters of a line that are shown.
_LONGEST = 96
_BEFORE = 40
_LONGEST_MARK = 40

_HIDDEN = "…"
_DEFAULT = re.compile(r"(\$\{\w+:-)[^}]*")
# A key with its value: the rest of the line, or the value in a list of keys on one line.
_PAIR = re.compile(
    r"""(?P<key> (?:^|(?<=[\s{,])) ["']? (?P<name>[\w.-]+) ["']? \s* [:=] \s+ )
        (?P<value> "[^"]*" | '[^']*' | (?P<rest>[^\s,{}\[\]][^,}]*) )""",
    re.VERBOSE,
)
_WHOLE = re.compile(r"""^\s*(?:-\s+)?["']?(?P<name>[\w.-]+)["']?\s*[:=]\s*(?P<value>[^{\[\s].*)$""")
_VARIABLE = re.compile(r"\$\{\w+(?::-…?)?\}")
_OTHER_SECRETS = frozenset({"authorization", "cookie", "connection_string", "x-api-key"})


@dataclass(frozen=True)
class SourceLine:
    """A line as messages quote it.

    Attributes:
        text: the line, or the part around the mark.
        start: columns before the mark.
        width: columns of the mark.
    """

    text: str
    start: int
    width: int


def source_line(file: str, line: int | None, marks: Sequence[str]) -> SourceLine | None:
    """Return a line of a file; ``None`` if it cannot be read.

    Args:
        file: the path as messages show it.
        line: 1-based.
        marks: texts to mark in this order: the last that is found, each after the one before it.
    """
    written = _read(file, line) if file and line else None
    if written is None or not written.strip():
        return None
    text = terminal(mask(_without_secrets(written.rstrip()))).rstrip()
    start, end = _found(text, marks)
    first = max(0, start - _BEFORE) if len(text) > _LONGEST else len(text) - len(text.lstrip())
    # A little indentation shows that the line is inside of something.
    first = max(0, first - 2) if first and len(text) <= _LONGEST else first
    cut = text[first : first + _LONGEST]
    before = "…" if first and len(text) > _LONGEST else ""
    after = "…" if first + _LONGEST < len(text) else ""
    place = min(start - first, len(cut))
    marked = cut[place : min(end - first, place + _LONGEST_MARK)]
    return SourceLine(f"{before}{cut}{after}", width(before + cut[:place]), max(1, width(marked)))


def _read(file: str, line: int) -> str | None:
    for path in _places(file):
        try:
            with TextIOWrapper(open_regular(path, limit=_LARGEST), encoding="utf-8", errors="replace") as source:
                return next(islice(source, line - 1, line), None)
        except (OSError, ValueError):
            continue
    return None


def _places(file: str) -> Iterable[Path]:
    """Return where a file can be that messages show by this name; see ``display_path``."""
    try:
        here = working_directory()
    except AgentEvalError:
        return ()
    root = repository_of(here)
    return (*((root / file,) if root is not None else ()), here / file)


def _without_secrets(line: str) -> str:
    """Return a line without the values of keys for secrets; names of variables stay."""
    line = _DEFAULT.sub(rf"\1{_HIDDEN}", line)
    whole = _WHOLE.match(line)
    if whole is not None and _is_secret(whole["name"]):
        return line[: whole.start("value")] + _hidden(whole["value"])
    return _PAIR.sub(lambda pair: pair["key"] + _hidden(pair["value"]) if _is_secret(pair["name"]) else pair[0], line)


def _is_secret(name: str) -> bool:
    return is_secret_name(name) or name.lower() in _OTHER_SECRETS


def _hidden(value: str) -> str:
    """Return the variables of a value; everything else is hidden."""
    variables = _VARIABLE.findall(value)
    return " ".join(variables) if variables else _HIDDEN


def _found(text: str, marks: Sequence[str]) -> tuple[int, int]:
    """Return the place of the last mark that is found, else of the first word."""
    start = len(text) - len(text.lstrip(" -"))
    first = re.compile(r"[^\s:=,{}\[\]]+").match(text, start)
    place = (start, first.end() if first else start + 1)
    position = 0
    for mark in marks:
        shown = terminal(mask(mark))
        found = re.compile(rf"(?<!\w){re.escape(shown)}(?!\w)").search(text, position)
        if found is not None:
            place, position = found.span(), found.end()
    return place
