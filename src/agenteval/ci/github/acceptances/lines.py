"""Finds the lines in which the author of a text accepts something: what is quoted or shown as code says nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_LINE: Final = re.compile(r"[ \t]*Agenteval-Accept:[ \t]*(\S.*)", re.IGNORECASE)
_ANYWHERE: Final = re.compile(f"^{_LINE.pattern}$", re.IGNORECASE | re.MULTILINE)
_COMMENT: Final = "<!--"
_STRUCK: Final = "~~"


def written_lines(text: str) -> list[str]:
    """Return what follows ``Agenteval-Accept:`` in all lines of a text, also in those that say nothing."""
    return [found.strip() for found in _ANYWHERE.findall(text)]


def accepting_lines(text: str) -> list[str]:
    """Return what follows ``Agenteval-Accept:`` in the lines of a text in Markdown that its author says.

    These are lines of paragraphs. Lines in code, quotes, lists, comments and struck text are left out. After an
    HTML element nothing counts, because the element may hide, quote or strike what follows.

    Args:
        text: Markdown, as people write it on GitHub.
    """
    # Most texts have no such line, and strangers can write long ones.
    if not written_lines(text):
        return []
    tokens = _parser().parse(text)
    found: list[str] = []
    for place, token in enumerate(tokens):
        if token.type == "html_block" and not token.content.lstrip().startswith(_COMMENT):
            break
        if token.type == "inline" and token.level == 1 and tokens[place - 1].type == "paragraph_open":
            lines, is_plain = _of_paragraph(token.children or ())
            found += lines
            if not is_plain:
                break
    return found


def _of_paragraph(parts: Sequence[Token]) -> tuple[list[str], bool]:
    """Return the accepting lines of a paragraph, and whether what follows is still plain text."""
    found: list[str] = []
    for line in _split(parts):
        match = _LINE.fullmatch("".join(_source(part) for part in line))
        if match and line[0].type == "text":
            found.append(match[1].strip())
        elif any(part.type == "html_inline" and not part.content.startswith(_COMMENT) for part in line):
            return found, False
        elif any(part.type == "text" and _STRUCK in part.content for part in line):
            # Nobody strikes more than a paragraph.
            break
    return found, True


def _split(parts: Sequence[Token]) -> Iterator[list[Token]]:
    line: list[Token] = []
    for part in parts:
        if part.type in {"softbreak", "hardbreak"}:
            yield line
            line = []
        else:
            line.append(part)
    yield line


def _source(part: Token) -> str:
    """Return a part as it was written."""
    return f"{part.markup}{part.content}{part.markup}" if part.type == "code_inline" else part.content


@cache
def _parser() -> MarkdownIt:
    """Return a parser of blocks, code and HTML; names of cases may contain other marks."""
    # Imported here: most runs read no such text.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.inline.ruler.enableOnly(["text", "newline", "backticks", "html_inline"])
    return parser
