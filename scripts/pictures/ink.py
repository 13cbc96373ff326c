"""Texts as SVG: colours for light and dark, widths of characters, lines of words, and the elements of a picture.

A picture is laid out without a browser. Each piece of text has a fixed length in the SVG, so no font makes it
overlap with its neighbour.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from xml.sax.saxutils import escape

LINE_HEIGHT = 1.5
MONO_WIDTH = 0.6

#: GitHub's colours.
THEMES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "light": MappingProxyType(
            {
                "page": "#ffffff", "text": "#1f2328", "quiet": "#59636e", "link": "#0969da", "border": "#d1d9e0",
                "code": "#eff1f3", "head": "#f6f8fa", "chosen": "#ddf4ff", "bad": "#d1242f", "good": "#1a7f37",
                "warning": "#9a6700", "error": "#8250df", "removed": "#82071e", "removed-line": "#ffebe9",
                "added": "#116329", "added-line": "#dafbe1",
            }
        ),
        "dark": MappingProxyType(
            {
                "page": "#0d1117", "text": "#f0f6fc", "quiet": "#9198a1", "link": "#4493f8", "border": "#3d444d",
                "code": "#262c36", "head": "#151b23", "chosen": "#121d2f", "bad": "#f85149", "good": "#3fb950",
                "warning": "#d29922", "error": "#ab7df8", "removed": "#ffdcd7", "removed-line": "#67060c",
                "added": "#aff5b4", "added-line": "#033a16",
            }
        ),
    }
)  # fmt: skip

# Widths of the characters from the blank to the tilde in Helvetica, in thousandths of the size.
_WIDTHS = (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
    556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
    1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
    667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
    333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
    556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
)  # fmt: skip
_OTHER_WIDTH, _WIDE_WIDTH = 600, 1000
_BOLDER, _ROOM = 1.06, 1.04
# Characters that have a picture: their shapes are drawn, because fonts differ or have none.
ICONS = "❌✅⚠➖➕⚪🎲📉🔌💥🔽▸▾"
_STYLE = """
text { font-family: -apple-system, BlinkMacSystemFont, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif }
.m { font-family: ui-monospace, SFMono-Regular, 'SF Mono', Menlo, Consolas, 'Liberation Mono', monospace }
text { white-space: pre } .b { font-weight: 600 } .s { text-decoration: line-through }
"""
_FOLDS = frozenset("▸▾")
_WORDS = re.compile(r"[ ]+|[^ ]+")


_Line = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class _Shape:
    """What is drawn for a character: lines, on a scale where 1 is a third of its size, and what is behind them."""

    ink: str
    lines: tuple[_Line, ...]
    back: str = ""
    thick: float = 2


_SHAPES: Mapping[str, _Shape] = MappingProxyType(
    {
        "❌": _Shape("bad", (((-1, -1), (1, 1)), ((-1, 1), (1, -1))), thick=2.6),
        "✅": _Shape("good", (((-0.6, 0), (-0.1, 0.5), (0.65, -0.55)),), back="box"),
        "⚠": _Shape(
            "warning",
            (((0, -1), (1.2, 1), (-1.2, 1), (0, -1)), ((0, -0.2), (0, 0.25)), ((0, 0.65), (0, 0.7))),
            thick=1.8,
        ),
        "➖": _Shape("quiet", (((-1, 0), (1, 0)),)),
        "➕": _Shape("quiet", (((-1, 0), (1, 0)), ((0, -1), (0, 1)))),
        "⚪": _Shape("quiet", (), back="circle"),
        "🎲": _Shape(
            "warning",
            (
                ((-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)),
                ((-0.45, -0.45), (-0.44, -0.44)),
                ((0, 0), (0.01, 0)),
                ((0.45, 0.45), (0.44, 0.44)),
            ),
        ),
        "📉": _Shape("bad", (((-1, -1), (-1, 1), (1, 1)), ((-0.6, -0.7), (-0.1, 0), (0.3, -0.2), (1, 0.5)))),
        "🔌": _Shape(
            "error",
            (
                ((-0.7, -0.2), (0.7, -0.2), (0.7, 0.4), (0, 1), (-0.7, 0.4), (-0.7, -0.2)),
                ((-0.35, -0.2), (-0.35, -1)),
                ((0.35, -0.2), (0.35, -1)),
            ),
        ),
        "💥": _Shape(
            "error",
            (((-1, 0), (1, 0)), ((0, -1), (0, 1)), ((-0.7, -0.7), (0.7, 0.7)), ((-0.7, 0.7), (0.7, -0.7))),
        ),
        "🔽": _Shape("warning", (((-0.9, -0.5), (0, 0.7), (0.9, -0.5), (-0.9, -0.5)),), back="filled", thick=1),
        "▸": _Shape("text", (((-0.5, -0.8), (0.6, 0), (-0.5, 0.8), (-0.5, -0.8)),), back="filled", thick=1),
        "▾": _Shape("text", (((-0.8, -0.5), (0, 0.6), (0.8, -0.5), (-0.8, -0.5)),), back="filled", thick=1),
    }
)


@dataclass(frozen=True)
class Span:
    """A piece of text in one style; ``ink`` is a colour of the theme."""

    text: str
    ink: str = "text"
    bold: bool = False
    mono: bool = False
    struck: bool = False
    size: float = 14
    back: str = ""

    @property
    def width(self) -> float:
        """Width in units of the picture."""
        if self.mono:
            return self.size * MONO_WIDTH * cells(self.text)
        total = sum(map(_width, self.text)) * (_BOLDER if self.bold else 1)
        return total * self.size * _ROOM / 1000


def cells(text: str) -> int:
    """Return the number of cells of a terminal that a text takes."""
    return sum(map(_cells, text))


def _cells(character: str) -> int:
    if _has_no_width(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _has_no_width(character: str) -> bool:
    return unicodedata.combining(character) != 0 or unicodedata.category(character) in {"Cf", "Mn"}


def _width(character: str) -> float:
    place = ord(character.replace("\u00a0", " ")) - ord(" ")
    if 0 <= place < len(_WIDTHS):
        return _WIDTHS[place]
    if _has_no_width(character):
        return 0
    if character in _FOLDS:
        return _OTHER_WIDTH
    return _WIDE_WIDTH if unicodedata.east_asian_width(character) in "WF" or character in ICONS else _OTHER_WIDTH


def lines_of(spans: Iterable[Span], width: float) -> list[list[Span]]:
    """Return the spans in lines of at most a width, broken at blanks and at ``\\n``.

    Args:
        spans: the text.
        width: a word that is wider is broken where it ends.
    """
    lines: list[list[Span]] = [[]]
    for word in _glued(_words(spans)):
        taken = sum(span.width for span in lines[-1])
        if word[0].text == "\n":
            lines.append([])
        elif word[0].text.isspace() and not word[0].mono and not lines[-1]:
            continue
        elif taken + sum(span.width for span in word) <= width:
            lines[-1] += word
        elif word[0].text.isspace():
            lines.append([])
        else:
            lines[len(lines) - (not lines[-1]) :] = _broken(word, width)
    while len(lines) > 1 and not lines[-1]:
        lines.pop()
    return list(map(_stripped, lines))


def _words(spans: Iterable[Span]) -> Iterator[Span]:
    for span in spans:
        for number, part in enumerate(span.text.split("\n")):
            if number:
                yield _with(span, "\n")
            for word in _WORDS.findall(part):
                yield _with(span, word)


def _glued(words: Iterable[Span]) -> Iterator[list[Span]]:
    """Yield words with what touches them, such as a comma after code."""
    group: list[Span] = []
    for word in words:
        if word.text == "\n" or word.text.isspace():
            if group:
                yield group
            group = []
            yield [word]
        else:
            group.append(word)
    if group:
        yield group


def _broken(word: list[Span], width: float) -> list[list[Span]]:
    """Return a word in lines of its own."""
    lines: list[list[Span]] = [[]]
    room = width
    for span in word:
        text = span.text
        while _with(span, text).width > room and (len(text) > 1 or room < width):
            fitting = next((end for end in range(len(text), 0, -1) if _with(span, text[:end]).width <= room), 0)
            if not fitting and room == width:
                fitting = 1
            if fitting:
                lines[-1].append(_with(span, text[:fitting]))
            text, room = text[fitting:], width
            lines.append([])
        if text:
            lines[-1].append(_with(span, text))
            room -= lines[-1][-1].width
    return [line for line in lines if line]


def _stripped(line: list[Span]) -> list[Span]:
    while line and line[-1].text.isspace():
        line = line[:-1]
    return line


def _with(span: Span, text: str) -> Span:
    return Span(text, span.ink, span.bold, span.mono, span.struck, span.size, span.back)


def joined(line: Sequence[Span]) -> list[Span]:
    """Return a line with neighbours of the same style as one span."""
    found: list[Span] = []
    for span in line:
        if found and _with(found[-1], span.text) == span:
            found[-1] = _with(span, found[-1].text + span.text)
        else:
            found.append(span)
    return found


@dataclass
class Canvas:
    """Collects the elements of a picture, and the words for screen readers.

    Attributes:
        theme: name of the colours.
        width: of the picture.
    """

    theme: str
    width: float
    parts: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def colour(self, ink: str) -> str:
        """Return a colour of the theme."""
        return THEMES[self.theme][ink]

    def box(self, x: float, y: float, width: float, height: float, *, fill: str = "", line: str = "") -> None:
        """Draw a rectangle with round corners."""
        paint = f'fill="{self.colour(fill)}"' if fill else 'fill="none"'
        stroke = f' stroke="{self.colour(line)}"' if line else ""
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="5" {paint}{stroke}/>'
        )

    def bar(self, x: float, y: float, width: float, height: float, fill: str) -> None:
        """Draw a rectangle with square corners."""
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{self.colour(fill)}"/>'
        )

    def line(self, x: float, y: float, line: Iterable[Span]) -> float:
        """Draw a line of text whose middle is at ``y``; return where it ends."""
        told = []
        for span in joined(list(line)):
            told.append(span.text)
            for piece in _pieces(span):
                if piece.text in ICONS:
                    self._icon(piece, x, y)
                elif piece.text.strip():
                    self._text(piece, x, y)
                x += piece.width
        if text := "".join(told).strip():
            self.words.append(text)
        return x

    def _text(self, span: Span, x: float, y: float) -> None:
        if span.back:
            self.box(x - 1.5, y - span.size * 0.72, span.width + 3, span.size * 1.44, fill=span.back)
        text = span.text
        # Leading blanks are space, which not all viewers keep.
        start = len(text) - len(text.lstrip(" "))
        x += _with(span, text[:start]).width
        shown = _with(span, text.strip(" "))
        kinds = [kind for kind, on in (("m", span.mono), ("b", span.bold), ("s", span.struck)) if on]
        classes = f' class="{" ".join(kinds)}"' if kinds else ""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y + span.size * 0.36:.1f}" font-size="{span.size:g}"{classes} '
            f'fill="{self.colour(span.ink)}" textLength="{shown.width:.1f}" lengthAdjust="spacingAndGlyphs">'
            f"{escape(shown.text)}</text>"
        )

    def _icon(self, span: Span, x: float, y: float) -> None:
        shape = _SHAPES[span.text]
        size, middle, colour = span.size * 0.36, x + span.width / 2, self.colour(shape.ink)
        if shape.back == "box":
            self.parts.append(
                f'<rect x="{middle - 1.2 * size:.1f}" y="{y - 1.2 * size:.1f}" width="{2.4 * size:.1f}" '
                f'height="{2.4 * size:.1f}" rx="3" fill="{colour}"/>'
            )
            colour = self.colour("page")
        elif shape.back == "circle":
            self.parts.append(
                f'<circle cx="{middle:.1f}" cy="{y:.1f}" r="{1.1 * size:.1f}" fill="none" stroke="{colour}" '
                'stroke-width="2"/>'
            )
        fill = colour if shape.back == "filled" else "none"
        for points in shape.lines:
            path = "L".join(f"{middle + across * size:.1f} {y + down * size:.1f}" for across, down in points)
            self.parts.append(
                f'<path d="M{path}" fill="{fill}" stroke="{colour}" stroke-width="{shape.thick}" '
                'stroke-linecap="round" stroke-linejoin="round"/>'
            )

    def svg(self, title: str, height: float) -> str:
        """Return the whole picture."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {height:g}" width="{self.width:g}" '
            f'height="{height:g}" role="img" aria-labelledby="title desc">'
        )
        told = escape(" ".join(self.words))
        return "\n".join(
            [
                head,
                f'<title id="title">{escape(title)}</title>',
                f'<desc id="desc">{told}</desc>',
                f"<style>{_STYLE}</style>",
                *self.parts,
                "</svg>\n",
            ]
        )


def _pieces(span: Span) -> Iterator[Span]:
    """Yield a span with its icons apart."""
    for part in re.split(f"([{ICONS}])\ufe0f?", span.text):
        if part:
            yield _with(span, part)
