"""The one way foreign text takes into anything we write.

Foreign is whatever an agent, a judge, a suite or a baseline wrote: names, questions, answers, reasons, error
messages. Every function here is pure, accepts any ``str`` (lone surrogates included) and returns text that
every encoder takes. ``limit`` counts characters of the original; what is longer is cut *before* it is escaped,
so a cut never splits an escape and an answer of a megabyte costs nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import escape as _html_escape

#: Breaks a reference for GitHub's filters and shows nothing. Entities alone do not: mentions and issue numbers
#: are looked for after entities have become characters.
_GAP = "&#8203;"

_REPLACEMENT = "\ufffd"

_MASK = "***"

_MINIMUM_SECRET = 4

_MINIMUM_SECRET_LINE = 8

_MAXIMUM_LINES = 60

_SHORTEST_COMMIT = 7

# The payload of a string sequence excludes every control character: it ends at the next introducer, so matching
# stays linear, and an unterminated sequence cannot make the rest of an answer disappear.
_TERMINAL_SEQUENCE = re.compile(
    r"""
      (?: \x1b\[ | \x9b ) [0-?]* [\x20-/]* [@-~]                                      # CSI: colours, cursor
    | (?: \x1b[\]PX^_] | [\x90\x98\x9d-\x9f] )                                        # OSC, DCS, SOS, PM, APC
      [^\x00-\x1f\x7f-\x9f]* (?: \x07 | \x1b\\ | \x9c )
    | \x1b [\x20-/]* [0-~]                                                            # two-character sequences
    """,
    re.VERBOSE,
)

_LINE_BREAK = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")

_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f]")  # all but white space

_HIDDEN = re.compile(
    "[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional marks, embeddings, overrides, isolates
    "\u206a-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"  # deprecated formats, byte order mark, tags
)

_NO_CHARACTER = re.compile("[\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")

_INLINE = re.compile(
    r"""
      (?P<list> \A \d{1,9} (?=[.)](?:\ |\Z)) )               # would start an ordered list
    | (?P<entity> \A[-+=] | [&<>|\\`*_{}\[\]~^"] )
    | (?P<gap> @                                            # @user, @org/team, mail addresses, user@sha
             | (?<![A-Za-z0-9]) GH- (?=\d)                  # GH-1
             | : (?=//)                                     # https://
             | : (?!\d\d?:) (?=[\w+-]{1,50}:)               # :emoji:, but not the minutes of a time
             | (?<![A-Za-z0-9]) www (?=\.) )
    | (?P<number> \# )                                      # #1, user/repo#1, headings
    | (?P<dollar> \$ )                                      # $mathematics$
    | (?P<commit> (?<![A-Za-z0-9]) (?=\d*[a-f]) (?=[a-f]*\d)  # a commit, but no number and no word
                  [0-9a-f]{7,} (?![A-Za-z0-9]) )
    """,
    re.VERBOSE | re.IGNORECASE,
)

_WEB_ADDRESS = re.compile(r"https?://[!#$%&'()*+,./:;=?@A-Z\[\]_a-z~0-9-]{1,4000}")

_BACKTICKS = re.compile("`+")

_ANY_WORKFLOW_COMMAND = re.compile(r"##(?=\[)|:(?=:)")

_WORKFLOW_COMMAND = re.compile(r"##(?=\[)|^[^\S\n]*:(?=:)", re.MULTILINE)

_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")

_CONTROL_PICTURES = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\u2421"}


def visible(text: str) -> str:
    """The text without control sequences and characters that show nothing; tabs and line feeds stay."""
    return _clean(text)


def one_line(text: str, limit: int | None = None) -> str:
    """The text without control sequences, every run of white space one blank, cut to ``limit`` with an ellipsis."""
    cleaned, rest = _prepare(text, limit)
    line = " ".join(cleaned.split())
    if limit is not None and len(line) > limit:
        return f"{line[:limit]}…"
    return f"{line}…" if rest else line


def markdown_inline(text: str, limit: int | None = None) -> str:
    """One line of Markdown that shows the text and does nothing else, at any place of a page, table cells included.

    Specials become HTML entities, which CommonMark never reads as structure. Mentions, issue and commit references,
    links and emoji codes get an invisible gap. The only markup in the result is ``<span>$</span>``, GitHub's
    documented way to write a dollar sign that begins no formula.
    """
    return _INLINE.sub(_escape_inline, one_line(text, limit))


def markdown_lines(text: str, limit: int | None = None) -> str:
    """Like :func:`markdown_inline`, but line breaks and indentation stay visible (``<br>``, ``&nbsp;``).

    It wraps in a table cell, where a fence would need a scroll bar.
    """
    cut, rest = _cut(text, limit)
    lines = cut.strip("\n").expandtabs(4).split("\n")
    shown = [_escape_cell_line(line) for line in lines[:_MAXIMUM_LINES]]
    if len(lines) > _MAXIMUM_LINES:
        shown.append(f"… ({len(lines) - _MAXIMUM_LINES:,} more lines)")
    if rest:
        shown.append(f"… ({rest:,} more characters)")
    return "<br>".join(shown)


def markdown_marked(pieces: Iterable[tuple[str, bool]], element: str) -> str:
    """Like :func:`markdown_lines`, of a text in pieces.

    Args:
        pieces: text, and whether it stands in an element of its own; one after the other they are the whole text.
            Terminal sequences must not be split: :func:`visible` removes them first.
        element: name of that element, ``del`` or ``ins``.
    """
    lines = [""]
    for text, marked in pieces:
        first, *others = _clean(text).expandtabs(4).split("\n")
        lines[-1] += _escape_piece(first, element if marked else "", begins=not lines[-1])
        lines += (_escape_piece(other, element if marked else "", begins=True) for other in others)
    while len(lines) > 1 and not lines[-1]:
        lines.pop()
    if len(lines) > _MAXIMUM_LINES:
        lines[_MAXIMUM_LINES:] = [f"… ({len(lines) - _MAXIMUM_LINES:,} more lines)"]
    return "<br>".join(line.rstrip() for line in lines)


def markdown_block(text: str, limit: int | None = None) -> str:
    """A fenced code block, its fence longer than any run of backticks inside, without a line end after it."""
    cut, rest = _cut(text, limit)
    # A code block cannot be escaped, and its source stays in the body: nothing in it may look like a hidden marker.
    content = cut.replace("<!--", "<\u200b!--")
    if rest:
        content = f"{content}\n… ({rest:,} more characters)"
    longest = max(map(len, _BACKTICKS.findall(content)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{content}\n{fence}"


def html(text: str) -> str:
    """The text for HTML content and quoted attributes."""
    return _html_escape(_clean(text), quote=True)


def address(text: str) -> str:
    """The text as the target of a link in an attribute; ``#`` for anything but a web address."""
    return html(text) if _WEB_ADDRESS.fullmatch(text) else "#"


def json_in_html(text: str) -> str:
    """JSON text for a ``script`` element that holds data: the same values, and no markup to end or open anything.

    What would reorder or hide the text around it is dropped.
    """
    if not text.isascii():
        text = _NO_CHARACTER.sub(_REPLACEMENT, _HIDDEN.sub("", text))
    # Outside of strings, JSON has none of them.
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def xml(text: str) -> str:
    """The text with only characters that XML 1.0 allows; markup is left to the XML writer.

    Control characters become their visible pictures (``␛``), anything else without a place in XML ``�``. What would
    reorder or hide the text around it is dropped.
    """
    if text.isascii() and text.isprintable():
        return text
    return _NOT_XML.sub(_picture, _HIDDEN.sub("", text))


def terminal(text: str, *, multiline: bool = False, wrapped: bool = False) -> str:
    """The text for a terminal or log: no control sequences and no control characters at all.

    What a GitHub runner would take for a command of a workflow (``::error::`` at the start of a line, ``##[group]``
    anywhere) gets an invisible gap.

    Args:
        multiline: line feeds stay; else they become blanks.
        wrapped: the lines may be broken anywhere, so that any ``::`` may come to stand at the start of one.
    """
    cleaned = _clean(text).replace("\t", " ")
    if not multiline:
        cleaned = cleaned.replace("\n", " ")
    pattern = _ANY_WORKFLOW_COMMAND if wrapped else _WORKFLOW_COMMAND
    return pattern.sub("\\g<0>\u200b", cleaned)


def workflow_data(text: str) -> str:
    """The text as data of a workflow command, one line; the runner turns it back into the original."""
    encodable = _NO_CHARACTER.sub(_REPLACEMENT, text)
    return encodable.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def workflow_property(text: str) -> str:
    """The text as a property of a workflow command (``::error title=…::``)."""
    return workflow_data(text).replace(":", "%3A").replace(",", "%2C")


def _forms(secret: str) -> set[str]:
    """How a secret may stand in a text: as it is, line by line, and inside a JSON string."""
    parts = {secret, secret.strip()} | {
        line for line in map(str.strip, secret.splitlines()) if len(line) >= _MINIMUM_SECRET_LINE
    }
    plain = {part for part in parts if len(part.strip()) >= _MINIMUM_SECRET}
    return plain | {json.dumps(part, ensure_ascii=ascii_only)[1:-1] for part in plain for ascii_only in (True, False)}


def _prepare(text: str, limit: int | None) -> tuple[str, int]:
    """As much of the text, cleaned, as ``limit`` may need, and how many characters that leaves out."""
    if limit is None:
        return _clean(text), 0
    enough = 4 * limit + 256
    return _clean(text[:enough]), max(0, len(text) - enough)


def _cut(text: str, limit: int | None) -> tuple[str, int]:
    """The cleaned text up to the limit, and how many characters that leaves out."""
    cleaned, rest = _prepare(text, limit)
    if limit is None or len(cleaned) <= limit:
        return cleaned, rest
    return cleaned[:limit], rest + len(cleaned) - limit


def _clean(text: str) -> str:
    """Removes what shows nothing and may do harm; keeps tabs and line feeds."""
    if text.isascii() and text.isprintable():
        return text
    text = _TERMINAL_SEQUENCE.sub("", text)
    text = _LINE_BREAK.sub("\n", text)
    return _NO_CHARACTER.sub(_REPLACEMENT, _HIDDEN.sub("", _CONTROL.sub("", text)))


def _escape_inline(match: re.Match[str]) -> str:
    found = match[0]
    match match.lastgroup:
        case "entity":
            return f"&#{ord(found)};"
        case "number":
            return f"&#35;{_GAP}"
        case "dollar":
            return "<span>$</span>"
        case "commit":
            parts = (
                found[start : start + _SHORTEST_COMMIT - 1] for start in range(0, len(found), _SHORTEST_COMMIT - 1)
            )
            return _GAP.join(parts)
        case _:
            return f"{found}{_GAP}"


def _escape_cell_line(line: str) -> str:
    content = line.lstrip(" ")
    return "&nbsp;" * (len(line) - len(content)) + _INLINE.sub(_escape_inline, content.rstrip())


def _escape_piece(text: str, element: str, *, begins: bool) -> str:
    """A part of a line; the blanks at its ends stay, outside of the element, and are indentation where it begins."""
    content = text.strip(" ")
    if not content:
        return "&nbsp;" * len(text) if begins else text
    before, after = (len(text) - len(text.lstrip(" ")), len(text) - len(text.rstrip(" ")))
    escaped = _INLINE.sub(_escape_inline, content)
    inner = f"<{element}>{escaped}</{element}>" if element else escaped
    return ("&nbsp;" if begins else " ") * before + inner + " " * after


def _picture(match: re.Match[str]) -> str:
    return _CONTROL_PICTURES.get(ord(match[0]), _REPLACEMENT)
