"""Characters that a reader does not see between two characters of a word.

Cleaning a text removes them, so a secret is recognised in a text without them.
"""

from __future__ import annotations

import re

#: A terminal sequence. The payload of a string sequence excludes every control character: it ends at the next
#: introducer, so matching stays linear, and an unterminated sequence cannot make the rest of an answer disappear.
TERMINAL_SEQUENCE = re.compile(
    r"""
      (?: \x1b\[ | \x9b ) [0-?]* [\x20-/]* [@-~]                                      # CSI: colours, cursor
    | (?: \x1b[\]PX^_] | [\x90\x98\x9d-\x9f] )                                        # OSC, DCS, SOS, PM, APC
      [^\x00-\x1f\x7f-\x9f]* (?: \x07 | \x1b\\ | \x9c )
    | \x1b [\x20-/]* [0-~]                                                            # two-character sequences
    """,
    re.VERBOSE,
)

#: The beginning of a terminal sequence, without the letter that ends it.
SEQUENCE_START = re.compile(r"(?: \x1b [\[\]PX^_]? | \x9b ) [0-?]* [\x20-/]*", re.VERBOSE)

#: What a terminal sequence begins with, without the parameters.
INTRODUCER = re.compile(r"\x1b[\[\]PX^_]?|\x9b")

#: Controls, formats, fillers, marks that combine, replacement characters and non-characters. White space
#: is not part of it.
INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad"
    "\u0300-\u036f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20d0-\u20ff\u2800\u3164"
    "\ud800-\udfff\ufdd0-\ufdef\ufe00-\ufe0f\ufe20-\ufe2f\ufeff\uffa0\ufff0-\uffff"
    "\U000110bd\U000110cd\U00013430-\U00013455\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)

WHITE_SPACE = re.compile(r"\s+")

# Characters of a long text that are handled at once.
_PIECE = 2**16


def has_invisible(text: str) -> bool:
    """Return whether the text contains an invisible character."""
    if text.isascii():
        # White space is not printable either.
        return not without_white_space(text).isprintable()
    return INVISIBLE.search(text) is not None


def without_white_space(text: str) -> str:
    """Return the text without white space: equal to replacing :data:`WHITE_SPACE`, and several times as fast."""
    if len(text) <= _PIECE:
        return "".join(text.split())
    # A list of all words of a long text would need ten times the memory of the text.
    return "".join("".join(text[at : at + _PIECE].split()) for at in range(0, len(text), _PIECE))
