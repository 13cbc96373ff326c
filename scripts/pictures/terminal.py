"""What a command prints on a terminal, as a picture."""

from __future__ import annotations

from collections.abc import Iterator

from rich.color import ColorType
from rich.style import Style
from rich.text import Text
from scripts.pictures.ink import MONO_WIDTH, Canvas, Span

_SIZE, _HEIGHT, _SIDE, _HEAD = 12.0, 18.0, 18.0, 34.0
# The colours of a terminal by their numbers.
_INKS = ("text", "bad", "good", "warning", "link", "error", "link", "text")


def terminal_picture(printed: str, theme: str, title: str, *, command: str, columns: int) -> str:
    """Return the picture of a terminal.

    Args:
        printed: the output, with escape codes for colours.
        theme: light or dark.
        title: what the picture shows, for screen readers.
        command: the command that was typed.
        columns: the terminal's width.
    """
    lines = [_prompt(command), *map(_spans, Text.from_ansi(printed.rstrip("\n")).split("\n", allow_blank=True))]
    width = 2 * _SIDE + columns * _SIZE * MONO_WIDTH
    height = _HEAD + 14 + len(lines) * _HEIGHT + 10
    canvas = Canvas(theme, round(width))
    canvas.box(0.5, 0.5, canvas.width - 1, height - 1, fill="page", line="border")
    canvas.box(0.5, 0.5, canvas.width - 1, _HEAD, fill="head", line="border")
    for number, ink in enumerate(("bad", "warning", "good")):
        canvas.parts.append(
            f'<circle cx="{_SIDE + 4 + 20 * number}" cy="{_HEAD / 2}" r="5.5" fill="{canvas.colour(ink)}"/>'
        )
    y = _HEAD + 14 + _HEIGHT / 2
    for line in lines:
        canvas.line(_SIDE, y, line)
        y += _HEIGHT
    return canvas.svg(title, round(height))


def _prompt(command: str) -> Iterator[Span]:
    yield Span("$ ", "quiet", mono=True, size=_SIZE)
    yield Span(command, bold=True, mono=True, size=_SIZE)


def _spans(line: Text) -> Iterator[Span]:
    last = 0
    plain = line.plain
    for start, end, style in sorted((span.start, span.end, span.style) for span in line.spans):
        if start > last:
            yield Span(plain[last:start], mono=True, size=_SIZE)
        yield _styled(plain[max(start, last) : end], style if isinstance(style, Style) else Style.parse(style))
        last = max(last, end)
    yield Span(plain[last:], mono=True, size=_SIZE)


def _styled(text: str, style: Style) -> Span:
    ink = "text"
    if style.dim:
        ink = "quiet"
    if style.color is not None and style.color.type is not ColorType.DEFAULT and style.color.number is not None:
        number = style.color.number
        ink = "quiet" if number == 8 else _INKS[number % 8] if number < 16 else ink
    return Span(text, ink, bold=bool(style.bold), mono=True, struck=bool(style.strike), size=_SIZE)
