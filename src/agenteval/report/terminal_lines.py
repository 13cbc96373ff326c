"""Lines of a terminal: their styles, how much is shown, and the commands that show more."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal, TextIO

from agenteval.core import escape
from agenteval.core import text as texts
from agenteval.core.records import dataclass, field
from agenteval.core.secrets import mask

_PAGE = "report.html"
_DIRECTORY = Path("agenteval-report")
# These choose the cases themselves, or end an earlier run.
_CHOOSING = {"--failed", "--resume"}
_WITH_VALUE = {"--failed-in", "--out", "--runs"}


@dataclass(frozen=True)
class NextCommands:
    """How to go on; empty texts are left out."""

    again: str = ""
    prove: str = ""
    look: str = ""
    page: str = ""
    failed: str = "--failed"


def next_commands(directory: Path, words: Sequence[str] = ()) -> NextCommands:
    """Return the commands after a command of these words wrote the reports of a directory, without secrets."""
    page = directory / _PAGE
    folder = shlex.quote(mask(str(directory)))
    here = "" if directory == _DIRECTORY else f" {folder}"
    failed = "--failed" if directory == _DIRECTORY else f"--failed-in {folder}"
    look, shown_page = f"agenteval open{here}", mask(str(page))
    return NextCommands(_again(words), f"agenteval prove {folder}", look, shown_page, failed)


def _again(words: Sequence[str]) -> str:
    given = list(chain.from_iterable(word.split("=", 1) if word.startswith("--") else [word] for word in words))
    if not given or "--shard" in given:
        return ""
    kept: list[str] = []
    values = iter(given)
    for word in values:
        if word in _WITH_VALUE:
            next(values, "")
        elif word not in _CHOOSING:
            kept.append(word)
    return shlex.join(["agenteval", *map(mask, kept)])


@dataclass(frozen=True)
class TerminalDetail:
    """What is printed besides what needs eyes: with ``-v`` all cases. Explained errors are not repeated."""

    verbosity: int = 0
    commands: NextCommands = field(default_factory=NextCommands)
    explained: tuple[str, ...] = ()


#: red is for what broke, magenta for what could not be run, yellow for chance and cost, dim for context.
Style = Literal[
    "", "bold", "dim", "red", "bold red", "green", "magenta", "bold magenta", "yellow", "bold yellow", "bright_blue",
    "bold white on red", "bold white on green", "bold black on yellow", "bold white on magenta",
]  # fmt: skip
Part = tuple[str, Style]

#: The kinds of causes with separate lines, with sign and style; the others are counted.
SIGNS: Mapping[str, tuple[str, Style]] = {
    "broke": ("✗", "bold red"),
    "failed": ("✗", "bold red"),
    "error": ("!", "bold magenta"),
    "fell": ("↓", "bold red"),
    "suspicious": ("?", "bold yellow"),
}
_LONGEST = 500
LONGEST_NAME = 1_000


@dataclass(frozen=True)
class Line:
    """One line, which may take several on a narrow terminal, with cells before the first and before the others."""

    parts: tuple[Part, ...] = ()
    indent: int = 0
    hang: int = 2

    @property
    def text(self) -> str:
        """The text without styles."""
        return "".join(text for text, _ in self.parts)


BLANK = Line()


def line(*parts: Part | str, indent: int = 0, hang: int = 2) -> Line:
    """Make a line; a plain string has no style."""
    return Line(tuple((part, "") if isinstance(part, str) else part for part in parts), indent, hang)


def shown(text: str, limit: int = _LONGEST) -> str:
    """Return an untrusted text as one line that a terminal shows literally."""
    return escape.terminal(escape.one_line(text, limit), wrapped=True)


def write(lines: Iterable[Line], stream: TextIO, colour: bool, columns: int) -> None:
    """Print lines, wrapped to a number of cells."""
    if colour:
        _write_rich(lines, stream, columns)
        return
    encoding = stream.encoding or "utf-8"
    for item in lines:
        for parts in laid_out(item, columns):
            text = "".join(text for text, _ in parts) + "\n"
            # A character that the console cannot encode must not break a finished run.
            stream.write(text.encode(encoding, "replace").decode(encoding))


def laid_out(item: Line, columns: int) -> Iterator[list[Part]]:
    """Yield the lines that a line takes, with their indentation."""
    text = item.text
    # A narrow terminal has no room for an indentation.
    hang = min(item.hang, columns // 4)
    indent = min(item.indent, columns // 4)
    places = texts.spans(text, columns - hang, first=columns - indent)
    for number, (start, end) in enumerate(places):
        before = " " * (hang if number else indent)
        parts = _between(item.parts, start, end)
        yield [(before, ""), *parts] if before and parts else parts


def _between(parts: Iterable[Part], start: int, end: int) -> list[Part]:
    found: list[Part] = []
    position = 0
    for text, style in parts:
        piece = text[max(0, start - position) : max(0, end - position)]
        if piece:
            found.append((piece, style))
        position += len(text)
    return found


def _write_rich(lines: Iterable[Line], stream: TextIO, columns: int) -> None:
    # Imported here, because runs in CI do not need it.
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, force_terminal=True, width=columns, highlight=False, emoji=False, markup=False)
    for item in lines:
        for parts in laid_out(item, columns):
            # Text instead of str, because rich would parse brackets in untrusted text as markup.
            console.print(Text.assemble(*parts), soft_wrap=True)
