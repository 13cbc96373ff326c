"""Markdown as GitHub shows it, as a picture: headings, paragraphs, lists, tables, code with diff colours, and folds.

It knows what agenteval writes, and the HTML in it: ``b``, ``code``, ``sub``, ``a``, ``del``, ``ins``, ``br`` and
``details``.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from scripts.pictures.ink import LINE_HEIGHT, Canvas, Span, cells, lines_of

WIDTH = 720.0
_SIDE, _INDENT, _CELL = 18.0, 22.0, 10.0
_SIZE, _CODE_SIZE, _SMALL = 14.0, 11.5, 12.0
_HEADINGS = {"h1": 24.0, "h2": 20.0, "h3": 18.0, "h4": 15.0}
_GAP = 10.0
# Sums of widths are not exact.
_SPARE = 0.01
_HIDDEN = re.compile("[\u200b\u2060]|<!--.*?-->", re.DOTALL)
_TAG = re.compile(r"<(/?)(\w+)[^>]*?/?>")
_SUMMARY = re.compile(r"<summary>(.*?)</summary>", re.DOTALL)
_TEXTS = {"text": "", "softbreak": "\n", "hardbreak": "\n"}
_CHANGES: Mapping[str, Mapping[str, Any]] = {
    "strong_open": {"bold": True},
    "s_open": {"struck": True},
    "link_open": {"ink": "link"},
}
_INDENT_OF_LINE = re.compile(r"[-+ ]? *")
_FOLD_END = re.compile(r"</details>\n*")


@dataclass(frozen=True)
class _Style:
    ink: str = "text"
    bold: bool = False
    mono: bool = False
    struck: bool = False
    size: float = _SIZE

    def span(self, text: str) -> Span:
        back = "code" if self.mono else ""
        size = self.size * 0.86 if self.mono else self.size
        return Span(text, self.ink, self.bold, self.mono, self.struck, size, back)


def comment_picture(text: str, theme: str, title: str, *, opened: int = 0) -> str:
    """Return the picture of a comment on a pull request.

    Args:
        text: its Markdown.
        theme: light or dark.
        title: what the picture shows, for screen readers.
        opened: the number of folds with a diff or a table of answers that are shown open.
    """
    canvas = Canvas(theme, WIDTH)
    canvas.box(0.5, 0.5, WIDTH - 1, 1, fill="page", line="border")
    canvas.box(0.5, 0.5, WIDTH - 1, 38, fill="head", line="border")
    canvas.line(_SIDE, 20, [Span("github-actions", bold=True, size=13), Span(" bot commented", "quiet", size=13)])
    end = _Writer(canvas, opened).write(text, 38 + 16)
    canvas.parts[0] = canvas.parts[0].replace('height="1.0"', f'height="{end + 6:.1f}"')
    return canvas.svg(title, round(end + 8))


@dataclass
class _Writer:
    """Draws blocks from top to bottom."""

    canvas: Canvas
    opened: int
    _numbers: list[int] = field(default_factory=list)
    _mark: str = ""

    def write(self, text: str, top: float) -> float:
        """Draw a text; return where it ends."""
        tokens = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(_prepared(text))
        return self._blocks(tokens, top)

    def _blocks(self, tokens: Sequence[Token], top: float) -> float:
        place = 0
        while place < len(tokens):
            token = tokens[place]
            end = place
            match token.type:
                case "html_block":
                    end, top = self._html(tokens, place, top)
                case "table_open":
                    end = _closing(tokens, place)
                    top = self._table(tokens[place:end], top)
                case "fence" | "code_block":
                    top = self._code(token, top)
                case "hr":
                    self.canvas.bar(self._left, top + 4, self._room, 2, "border")
                    top += 8 + _GAP
                case "heading_open" | "paragraph_open":
                    top = self._text(token, tokens[place + 1], top)
                case _:
                    top = self._list(token, top)
            place = end + 1
        return top

    def _list(self, token: Token, top: float) -> float:
        """Begin or end a list or an item of it."""
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                self._numbers.append(int(token.attrGet("start") or 1) - 1)
            case "bullet_list_close" | "ordered_list_close":
                self._numbers.pop()
                return top if self._numbers else top + _GAP / 2
            case "list_item_open":
                self._numbers[-1] += 1
                self._mark = f"{self._numbers[-1]}." if token.markup == "." else "•"
            case _:
                pass
        return top

    def _text(self, token: Token, inline: Token, top: float) -> float:
        if token.type == "heading_open":
            style = _Style(bold=True, size=_HEADINGS.get(token.tag, _SIZE))
            return self._lines(inline, top + 4, style) + _GAP
        if self._mark:
            self.canvas.line(self._left - 14, top + _SIZE * LINE_HEIGHT / 2, [Span(self._mark)])
            self._mark = ""
        return self._lines(inline, top, _Style()) + (3 if self._numbers else _GAP)

    @property
    def _left(self) -> float:
        return _SIDE + _INDENT * len(self._numbers)

    @property
    def _room(self) -> float:
        return self.canvas.width - _SIDE - self._left

    def _lines(self, inline: Token, top: float, style: _Style) -> float:
        spans = list(_spans(inline.children or (), style))
        return self._draw(lines_of(spans, self._room), self._left, top)

    def _draw(self, lines: Sequence[Sequence[Span]], left: float, top: float) -> float:
        for line in lines:
            height = max((span.size for span in line), default=_SIZE) * LINE_HEIGHT
            self.canvas.line(left, top + height / 2, line)
            top += height
        return top

    def _html(self, tokens: Sequence[Token], place: int, top: float) -> tuple[int, float]:
        """Draw a fold, open or closed; return the next token and where the fold ends."""
        text = tokens[place].content
        if "<details" not in text:
            stripped = _TAG.sub("", text).strip()
            if stripped:
                top = self._draw(lines_of(_html_spans(text.strip(), _Style()), self._room), self._left, top) + _GAP
            return place, top
        end = _end_of_fold(tokens, place)
        inner = tokens[place + 1 : end]
        is_open = "<details open" in text or self._opens(inner)
        summary = _SUMMARY.search(text)
        spans = [Span("▾ " if is_open else "▸ "), *_html_spans(summary[1] if summary else "", _Style())]
        top = self._draw(lines_of(spans, self._room), self._left, top) + _GAP * 0.8
        if is_open:
            top = self._blocks(inner, top)
        return end, top

    def _opens(self, inner: Sequence[Token]) -> bool:
        shows = any(token.type == "fence" and token.info.strip() == "diff" for token in inner)
        self.opened -= shows
        return shows and self.opened >= 0

    def _code(self, token: Token, top: float) -> float:
        is_diff = token.info.strip() == "diff"
        columns = int((self._room - 24) / (_CODE_SIZE * 0.6))
        lines = [part for line in token.content.rstrip("\n").split("\n") for part in _pieces(line, columns)]
        height = len(lines) * _CODE_SIZE * LINE_HEIGHT
        self.canvas.box(self._left, top, self._room, height + 20, fill="head")
        top += 10
        for line in lines:
            kind = {"-": "removed", "+": "added", "@": "quiet"}.get(line[:1], "text") if is_diff else "text"
            if kind in {"removed", "added"}:
                self.canvas.bar(self._left + 8, top, self._room - 16, _CODE_SIZE * LINE_HEIGHT, f"{kind}-line")
            span = Span(line, kind, mono=True, size=_CODE_SIZE)
            self.canvas.line(self._left + 12, top + _CODE_SIZE * LINE_HEIGHT / 2, [span])
            top += _CODE_SIZE * LINE_HEIGHT
        return top + 10 + _GAP

    def _table(self, tokens: Sequence[Token], top: float) -> float:
        rows, sides = _rows(tokens)
        widths = _widths(rows, self._room)
        for number, row in enumerate(rows):
            cells_of_row = [lines_of(cell, width - 2 * _CELL) for cell, width in zip(row, widths, strict=False)]
            height = max(len(lines) for lines in cells_of_row) * _SIZE * LINE_HEIGHT + 12
            if number % 2 == 0 and number:
                self.canvas.bar(self._left, top, sum(widths), height, "head")
            x = self._left
            for lines, width, side in zip(cells_of_row, widths, sides, strict=False):
                self._cell(lines, x, top, width, side)
                x += width
            self._frame(widths, top, height)
            top += height
        return top + _GAP

    def _cell(self, lines: Sequence[Sequence[Span]], x: float, top: float, width: float, side: str) -> None:
        y = top + 6 + _SIZE * LINE_HEIGHT / 2
        for line in lines:
            spare = width - 2 * _CELL - sum(span.width for span in line)
            self.canvas.line(x + _CELL + {"right": spare, "center": spare / 2}.get(side, 0), y, line)
            y += _SIZE * LINE_HEIGHT

    def _frame(self, widths: Sequence[float], top: float, height: float) -> None:
        self.canvas.bar(self._left, top, sum(widths), 1, "border")
        self.canvas.bar(self._left, top + height, sum(widths), 1, "border")
        x = self._left
        for width in (*widths, 0):
            self.canvas.bar(x, top, 1, height, "border")
            x += width


def _prepared(text: str) -> str:
    # The end of a fold and the start of the next one are two blocks.
    return _FOLD_END.sub("</details>\n\n", _HIDDEN.sub("", text))


def _closing(tokens: Sequence[Token], place: int) -> int:
    closing = tokens[place].type.replace("_open", "_close")
    return next(index for index in range(place, len(tokens)) if tokens[index].type == closing)


def _end_of_fold(tokens: Sequence[Token], place: int) -> int:
    depth = 0
    for index in range(place, len(tokens)):
        if tokens[index].type == "html_block":
            depth += tokens[index].content.count("<details") - tokens[index].content.count("</details>")
            if depth <= 0:
                return index
    return len(tokens) - 1


def _rows(tokens: Sequence[Token]) -> tuple[list[list[list[Span]]], list[str]]:
    """Return the cells of each row of a table, and how its columns are aligned."""
    rows: list[list[list[Span]]] = []
    sides: list[str] = []
    style = _Style()
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type in {"th_open", "td_open"}:
            style = _Style(bold=token.type == "th_open")
            if len(rows) == 1:
                found = re.search(r"text-align:\s*(\w+)", str(token.attrGet("style") or ""))
                sides.append(found[1] if found else "left")
        elif token.type == "inline":
            rows[-1].append(list(_spans(token.children or (), style)))
    empty = not any(span.text.strip() for cell in rows[0] for span in cell)
    return (rows[1:] if empty else rows), sides


def _widths(rows: Sequence[Sequence[Sequence[Span]]], room: float) -> list[float]:
    """Return the width of each column: that of its content, or a share of the room."""
    most = [max(_longest(cell) for cell in column) for column in zip(*rows, strict=False)]
    widths = [width + 2 * _CELL for width in most]
    if sum(widths) <= room:
        return widths
    least = [max(_longest_word(cell) for cell in column) + 2 * _CELL for column in zip(*rows, strict=False)]
    spare = room - sum(least)
    if spare < 0:
        return [room * width / sum(least) for width in least]
    more = [width - low for width, low in zip(widths, least, strict=True)]
    return [low + spare * part / (sum(more) or 1) for low, part in zip(least, more, strict=True)]


def _longest(cell: Sequence[Span]) -> float:
    lines = lines_of(cell, 1e9)
    return max((sum(span.width for span in line) for line in lines), default=0) + _SPARE


def _longest_word(cell: Sequence[Span]) -> float:
    words = (replace(span, text=word) for span in cell for word in re.findall(r"[^ \n]+", span.text))
    return max((word.width for word in words), default=0) + _SPARE


def _spans(children: Sequence[Token], style: _Style) -> Iterator[Span]:
    """Yield the text of an inline token in its styles."""
    styles = [style]
    for token in children:
        if token.type in _TEXTS:
            yield styles[-1].span(_TEXTS[token.type] or token.content)
        elif token.type == "code_inline":
            yield replace(styles[-1], mono=True).span(token.content)
        elif token.type == "html_inline":
            yield from _tag(token.content, styles)
        elif token.nesting == 1:
            styles.append(replace(styles[-1], **_CHANGES.get(token.type, {})))
        elif token.nesting == -1:
            styles.pop()


def _html_spans(text: str, style: _Style) -> Iterator[Span]:
    """Yield the text of HTML in its styles."""
    styles, last = [style], 0
    for match in _TAG.finditer(text):
        if match.start() > last:
            yield styles[-1].span(html.unescape(text[last : match.start()]))
        yield from _tag(match[0], styles)
        last = match.end()
    if last < len(text):
        yield styles[-1].span(html.unescape(text[last:]))


def _tag(text: str, styles: list[_Style]) -> Iterator[Span]:
    """Change the style as a tag says."""
    found = _TAG.fullmatch(text)
    if found is None:
        return
    closes, name = bool(found[1]), found[2].lower()
    changed = {
        "b": replace(styles[-1], bold=True),
        "strong": replace(styles[-1], bold=True),
        "code": replace(styles[-1], mono=True),
        "sub": replace(styles[-1], ink="quiet", size=_SMALL),
        "a": replace(styles[-1], ink="link"),
        "del": replace(styles[-1], struck=True, ink="removed"),
        "ins": replace(styles[-1], ink="added"),
    }.get(name)
    if name == "br":
        yield styles[-1].span("\n")
    elif name == "details" and not closes:
        yield styles[-1].span("▸ ")
    elif changed and closes and len(styles) > 1:
        styles.pop()
    elif changed and not closes:
        styles.append(changed)


def _pieces(line: str, columns: int) -> Iterator[str]:
    """Yield a line of code in pieces of at most some cells, broken at blanks; later pieces keep its indent."""
    found = _INDENT_OF_LINE.match(line)
    indent = found[0] if found else ""
    while cells(line) > columns:
        end = len(line)
        while cells(line[:end]) > columns:
            end -= 1
        blank = line.rfind(" ", len(indent) + 1, end)
        end = blank if blank > 0 else end
        yield line[:end]
        line = indent + line[end:].lstrip(" ")
    yield line
