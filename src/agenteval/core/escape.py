"""Escapes untrusted text for every output format.

Text of agents, judges, suites and baselines is untrusted: names, questions, answers, reasons, error messages. Every
function here is pure, accepts any ``str`` (lone surrogates included) and returns text that every encoder accepts.
``limit`` counts characters of the original; longer text is truncated *before* it is escaped, so no escape is split
and an answer of a megabyte costs little.
"""

from __future__ import annotations

import re
from html import escape as _html_escape
from typing import Literal
from urllib.parse import urlsplit

# A terminal sequence. The payload of a string sequence excludes every control character: it ends at the next
# introducer, so matching stays linear, and an unterminated sequence cannot make the rest of an answer disappear.
_TERMINAL_SEQUENCE = re.compile(
    r"""
      (?: \x1b\[ | \x9b ) [0-?]* [\x20-/]* [@-~]                                      # CSI: colours, cursor
    | (?: \x1b[\]PX^_] | [\x90\x98\x9d-\x9f] )                                        # OSC, DCS, SOS, PM, APC
      [^\x00-\x1f\x7f-\x9f]* (?: \x07 | \x1b\\ | \x9c )
    | \x1b [\x20-/]* [0-~]                                                            # two-character sequences
    """,
    re.VERBOSE,
)

#: Invisible; breaks a reference for GitHub's filters. Entities alone do not: GitHub searches for mentions and issue
#: numbers after it has decoded entities.
_GAP = "&#8203;"

_REPLACEMENT = "\ufffd"

_MAXIMUM_LINES = 60

_SHORTEST_COMMIT = 7

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

#: The longest run of backticks or tildes in a code block. cmark-gfm, which renders GitHub's Markdown, keeps the
#: length of a fence in a byte: a line of 255 backticks ends any longer fence.
LONGEST_RUN = 100

_LONG_RUN = re.compile(rf"([`~])\1{{{LONGEST_RUN - 1}}}(?=\1)")

_ANY_WORKFLOW_COMMAND = re.compile(r"##(?=\[)|:(?=:)")

_WORKFLOW_COMMAND = re.compile(r"##(?=\[)|^[^\S\n]*:(?=:)", re.MULTILINE)

_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")

_CONTROL_PICTURES = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\u2421"}


def visible(text: str) -> str:
    """Return the text without control sequences and invisible characters; tabs and line feeds stay."""
    return _clean(text)


def one_line(text: str, limit: int | None = None) -> str:
    """Return the text as one line, without control sequences, truncated to ``limit`` with an ellipsis."""
    cleaned, rest = _prepare(text, limit)
    line = " ".join(cleaned.split())
    if limit is not None and len(line) > limit:
        return f"{line[:limit]}…"
    return f"{line}…" if rest else line


def markdown_inline(text: str, limit: int | None = None) -> str:
    """Return the text as one line of Markdown that shows it literally in any place, including table cells.

    Special characters become HTML entities, which CommonMark never reads as structure. Mentions, issue and commit
    references, links and emoji codes get an invisible gap. The only markup in the result is ``<span>$</span>``,
    GitHub's documented form of a dollar sign that does not begin a formula.
    """
    return _INLINE.sub(_escape_inline, one_line(text, limit))


def markdown_lines(text: str, limit: int | None = None) -> str:
    """Return the same as :func:`markdown_inline`, with visible line breaks and indentation (``<br>``, ``&nbsp;``).

    The text wraps in a table cell; a code block would need a scroll bar.
    """
    cut, rest = _cut(text, limit)
    lines = cut.strip("\n").expandtabs(4).split("\n")
    shown = [_escape_cell_line(line) for line in lines[:_MAXIMUM_LINES]]
    if len(lines) > _MAXIMUM_LINES:
        shown.append(f"… ({len(lines) - _MAXIMUM_LINES:,} more lines)")
    if rest:
        shown.append(f"… ({rest:,} more characters)")
    return "<br>".join(shown)


def markdown_block(text: str, limit: int | None = None, language: Literal["text", "diff", "sh"] = "text") -> str:
    """Return a fenced code block, its fence longer than any run of backticks inside.

    Blank lines surround the block, so that it is one wherever a template puts it: lists, quotes and elements of HTML
    end before it. An invisible gap breaks runs of more than ``LONGEST_RUN`` backticks or tildes.
    """
    cut, rest = _cut(text, limit)
    # A code block cannot be escaped, and its source stays in the body, so it must not contain hidden markers.
    content = _LONG_RUN.sub("\\g<0>\u200b", cut.replace("<!--", "<\u200b!--"))
    if rest:
        content = f"{content}\n… ({rest:,} more characters)"
    fence = "`" * (max([2, *map(len, _BACKTICKS.findall(content))]) + 1)
    return f"\n\n{fence}{language}\n{content}\n{fence}\n\n"


def html(text: str) -> str:
    """Return the text for HTML content and quoted attributes."""
    return _html_escape(_clean(text), quote=True)


def address(text: str) -> str:
    """Return the text as a link target for an attribute; ``#`` for anything but a web address."""
    return html(text) if _WEB_ADDRESS.fullmatch(text) else "#"


def json_in_html(text: str) -> str:
    """Return JSON text for a ``script`` element with data: equal values, without markup.

    Characters that reorder or hide the surrounding text are removed.
    """
    if not text.isascii():
        text = _NO_CHARACTER.sub(_REPLACEMENT, _HIDDEN.sub("", text))
    # JSON contains these characters in strings only.
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def xml(text: str) -> str:
    """Return the text with only the characters that XML 1.0 allows; the XML writer escapes markup.

    Control characters become visible symbols (``␛``); other characters that XML does not allow become ``�``.
    Characters that reorder or hide the surrounding text are removed.
    """
    # What is printable contains none of the characters below.
    if text.isprintable():
        return text
    return _NOT_XML.sub(_picture, _HIDDEN.sub("", text))


def terminal(text: str, *, multiline: bool = False, wrapped: bool = False) -> str:
    """Return the text for a terminal or log, without control sequences and control characters.

    Text that a GitHub runner would execute as a workflow command (``::error::`` at the start of a line, ``##[group]``
    anywhere) gets an invisible gap.

    Args:
        multiline: keep line feeds; otherwise they become spaces.
        wrapped: the output may break lines anywhere, so that any ``::`` can be at the start of a line.
    """
    cleaned = _clean(text).replace("\t", " ")
    if not multiline:
        cleaned = cleaned.replace("\n", " ")
    pattern = _ANY_WORKFLOW_COMMAND if wrapped else _WORKFLOW_COMMAND
    return pattern.sub("\\g<0>\u200b", cleaned)


def workflow_data(text: str) -> str:
    """Return the text as the data of a workflow command, in one line; the runner decodes it to the original."""
    encodable = _NO_CHARACTER.sub(_REPLACEMENT, text)
    return encodable.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def workflow_property(text: str) -> str:
    """Return the text as a property of a workflow command (``::error title=…::``)."""
    return workflow_data(text).replace(":", "%3A").replace(",", "%2C")


def _prepare(text: str, limit: int | None) -> tuple[str, int]:
    """Return the cleaned beginning of the text that ``limit`` may need, and the number of omitted characters."""
    if limit is None:
        return _clean(text), 0
    enough = 4 * limit + 256
    return _clean(text[:enough]), max(0, len(text) - enough)


def _cut(text: str, limit: int | None) -> tuple[str, int]:
    cleaned, rest = _prepare(text, limit)
    if limit is None:
        return cleaned, rest
    return cleaned[:limit], rest + max(0, len(cleaned) - limit)


def _clean(text: str) -> str:
    """Remove invisible and harmful characters; keep tabs and line feeds."""
    # What is printable contains none of the characters below.
    if text.isprintable():
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


def _picture(match: re.Match[str]) -> str:
    return _CONTROL_PICTURES.get(ord(match[0]), _REPLACEMENT)


# User and password end at the last @ of the host's part. A password may contain /, ? and #: then what stands
# before them looks like a host with a port that is not a number.
_USER = re.compile(
    r"""
      ^ ( https?: [/\\]* | [^/?\#]* [/\\]{2,} )
      (?: [^/?\#]* @ | [^/?\#@:\[\]]* : (?! \d* (?: [/?\#] | $ ) ) [^@]* @ )
    """,
    re.VERBOSE | re.IGNORECASE,
)


def display_url(url: str) -> str:
    """Return an address, valid or not, in one line without user, password, query and fragment: they may be secret."""
    # Before and after: control sequences may contain or separate the characters that delimit a password.
    shown = _without_user(one_line(_without_user(url)))
    return re.split("[?#]", shown, maxsplit=1)[0]


def _without_user(url: str) -> str:
    return _USER.sub(r"\1", url)


def is_http_url(url: str) -> bool:
    """Return whether an address has the scheme http or https, and a host."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)
