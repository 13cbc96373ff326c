"""Lines of styled texts, and their printing with or without colours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TextIO

from agenteval.core.text import cells, escape

#: red is for what broke, magenta for what could not be run, yellow for chance and cost, dim for context.
Style = Literal[
    "", "bold", "dim", "red", "bold red", "green", "magenta", "bold magenta", "yellow", "bold yellow", "bright_blue",
    "bold white on red", "bold white on green", "bold black on yellow", "bold white on magenta",
]  # fmt: skip
Part = tuple[str, Style]

_LONGEST = 500
LONGEST_NAME = 1_000


@dataclass(frozen=True, slots=True)
class Line:
    """One line, which may take several on a narrow terminal.

    Attributes:
        parts: escaped texts.
        indent: cells before the first line; ``hang`` are those before the others.
    """

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
    """Print lines, wrapped to a number of cells.

    Args:
        colour: whether the stream is a terminal with colours; rich is loaded only in this case.
    """
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
    places = cells.spans(text, columns - hang, first=columns - indent)
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
