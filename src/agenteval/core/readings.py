"""Readings of a text in which a secret can be recognised: decoded, folded, and without invisible characters."""

from __future__ import annotations

import html
import re
import string
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Set
from functools import cache, cached_property
from itertools import accumulate
from unicodedata import category, combining, normalize

from agenteval.core.escape import (
    INTRODUCER,
    INVISIBLE,
    SEQUENCE_START,
    TERMINAL_SEQUENCE,
    WHITE_SPACE,
    has_invisible,
    without_white_space,
)

# The two characters that stand for whole sentences would make a text 18 times as long.
_SENTENCE = re.compile("[\ufdfa\ufdfb]")

# Besides invisible characters, there are no marks after these planes.
_PLANE = 0x10000
_END = 0x20000


def folded(text: str) -> str:
    """Return a text in compatibility decomposition, case-folded, without marks that combine with a letter.

    The result is the same for each character alone as for the whole text.
    """
    return _marks().sub("", normalize("NFKD", normalize("NFKD", _SENTENCE.sub("", text)).casefold()))


def folds_into(text: str, letters: Set[str]) -> bool:
    """Return whether folding a text changes a character to one of these letters, or removes one between them."""
    changed = (form for letter in set(text) if not letter.isascii() and (form := folded(letter)) != letter)
    return any(not form or not letters.isdisjoint(form) for form in changed)


# Listed on first use: most texts are ASCII.
@cache
def _marks() -> re.Pattern[str]:
    found = [code for code in range(0x80, _END) if category(chr(code))[0] == "M" or combining(chr(code))]
    basic = _one_of(code for code in found if code < _PLANE)
    others = _one_of(code for code in found if code >= _PLANE)
    # A class of one plane is fast, and so is the test for another plane.
    return re.compile(f"{basic}+|(?=[{chr(_PLANE)}-{chr(_END)}]){others}")


def _one_of(codes: Iterable[int]) -> str:
    """Return a character class of ascending codes."""
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return f"[{''.join(f'{chr(first)}-{chr(last)}' for first, last in ranges)}]"


# Readings of a text in which a secret can be recognised: decoded, and without separators.
#
# A text can spell a secret in many ways: percent codes, HTML entities, escapes of JSON and Python, control characters
# between its letters, other forms of a letter. A view is the text after such spellings are undone, and maps each
# character back to its place.


# JSON in JSON in a percent-encoded address is three.
_ROUNDS = 8

# Of bytes of UTF-8, those of a character together.
_PERCENT_CODE = re.compile(
    r"""
      % [CDcd][0-9A-Fa-f] % [89ABab][0-9A-Fa-f]
    | % [Ee][0-9A-Fa-f] (?: % [89ABab][0-9A-Fa-f] ){2}
    | % [Ff][0-7] (?: % [89ABab][0-9A-Fa-f] ){3}
    | % (?: [0-9A-Fa-f]{2} | [uU][0-9A-Fa-f]{4} )
    """,
    re.VERBOSE,
)

_OPEN_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31})")
_ENTITY = re.compile(f"{_OPEN_ENTITY.pattern};")

# Of JSON, Python and others.
_ESCAPE = re.compile(
    r"""
      \\ (?: x [CDcd][0-9A-Fa-f] \\ x [89ABab][0-9A-Fa-f] | 3 [0-3][0-7] \\ 2 [0-7]{2} )
    | \\ (?: x [Ee][0-9A-Fa-f] (?: \\ x [89ABab][0-9A-Fa-f] ){2} | 3 [45][0-7] (?: \\ 2 [0-7]{2} ){2} )
    | \\ (?: x [Ff][0-7] (?: \\ x [89ABab][0-9A-Fa-f] ){3} | 3 6[0-7] (?: \\ 2 [0-7]{2} ){3} )
    | \\ (?: u [0-9A-Fa-f]{4} | u\{ [0-9A-Fa-f]{1,6} \} | U [0-9A-Fa-f]{8} | x [0-9A-Fa-f]{2} | [0-3]?[0-7]{2} | . )
    """,
    re.VERBOSE | re.DOTALL,
)

# One kind after the other, because together they would be taken for each other: in `\&lt;`, the backslash does not
# escape the ampersand, and `&#1\u0031;` is one character.
_ENCODINGS = (("%", _PERCENT_CODE), ("&", _ENTITY), ("\\", _ESCAPE), ("&", _OPEN_ENTITY))

_BYTE = re.compile(r"(?:%|\\x)(..)|\\([0-7]{3})")

_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "e": "\x1b"}

_NO_HEX_DIGIT = re.compile(r"0[xX]|[^0-9A-Fa-f]")

_NO_HEX_LETTER = dict.fromkeys(code for code in range(0x80) if chr(code) not in string.hexdigits)

# Characters of a text that are folded at once to follow a place.
_PIECE = 4096

# A pattern and what its matches become.
_Step = tuple[re.Pattern[str], Callable[[str], str]]


class View:
    """A reading of a text.

    Args:
        parent: what it was made of; ``None`` for the text as it is.
        step: the pattern whose matches were replaced in the parent, and their replacement.
    """

    def __init__(self, text: str, parent: View | None = None, step: _Step | None = None) -> None:
        self.text = text
        self._parent = parent
        self._step = step

    @cached_property
    def has_invisible(self) -> bool:
        """Whether the text contains an invisible character."""
        return has_invisible(self.text)

    def changed(self, pattern: re.Pattern[str], replace: Callable[[str], str]) -> View:
        """Return this view with the matches of a pattern replaced."""
        text = pattern.sub(lambda match: replace(match[0]), self.text)
        return self if text == self.text else View(text, self, (pattern, replace))

    def without_white_space(self) -> View:
        """Return this view in lower case, without white space."""
        return View(_lower(without_white_space(self.text)), self, (WHITE_SPACE, _nothing))

    def hex_digits(self) -> View:
        """Return the hexadecimal digits of this view in lower case, without the prefix ``0x``."""
        # Equal to replacing the pattern, and several times as fast.
        text = self.text.replace("0x", "").replace("0X", "")
        if not text.isascii():
            text = text.encode("ascii", "ignore").decode("ascii")
        return View(text.translate(_NO_HEX_LETTER).lower(), self, (_NO_HEX_DIGIT, _nothing))

    def sources(self, spans: Collection[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return where the sources of parts of this view begin and end in the original text.

        Only the asked places are followed, not every character of the view, which can be much larger.
        """
        begins = sorted({begin for begin, _ in spans})
        lasts = sorted({end - 1 for _, end in spans})
        first = dict(zip(begins, self._followed(begins, 0), strict=True))
        last = dict(zip(lasts, self._followed(lasts, -1), strict=True))
        return [(first[begin], last[end - 1] + 1) for begin, end in spans]

    def _followed(self, places: list[int], side: int) -> list[int]:
        """Return the places in the original text of sorted places; of a match, the first or last character."""
        view = self
        while view._parent is not None:
            places = view._in_parent(places, side)
            view = view._parent
        return places

    def _in_parent(self, places: list[int], side: int) -> list[int]:
        if self._parent is None or self._step is None or not places:
            return places
        pattern, replace = self._step
        found: list[int] = []
        # How far the parent is ahead of this view.
        ahead = 0
        for match in pattern.finditer(self._parent.text):
            begin, end = match.span()
            while places[len(found)] + ahead < begin:
                found.append(places[len(found)] + ahead)
                if len(found) == len(places):
                    return found
            size = 0 if replace is _nothing else len(replace(match[0]))
            while places[len(found)] + ahead < begin + size:
                found.append(begin if side == 0 else end - 1)
                if len(found) == len(places):
                    return found
            ahead += end - begin - size
        return [*found, *(place + ahead for place in places[len(found) :])]


class _FoldedView(View):
    """A view without differences that readers do not see: accents, forms, width and case of letters.

    Args:
        parent: what it is made of.
    """

    def __init__(self, parent: View) -> None:
        super().__init__(folded(parent.text), parent)

    def _in_parent(self, places: list[int], side: int) -> list[int]:  # noqa: ARG002 - a part of a character is its whole
        # Each character is folded alone, so only the pieces with places are followed by character.
        text = "" if self._parent is None else self._parent.text
        found: list[int] = []
        at = 0
        for begin in range(0, len(text), _PIECE):
            piece = text[begin : begin + _PIECE]
            end = at + len(folded(piece))
            if len(found) < len(places) and places[len(found)] < end:
                inside = places[len(found) : bisect_left(places, end)]
                found += [begin + place for place in _unfolded(piece, [place - at for place in inside])]
            at = end
        return found


def _unfolded(text: str, places: list[int]) -> Iterator[int]:
    if text.isascii():
        yield from places
        return
    ends = list(accumulate(len(folded(letter)) for letter in text))
    yield from (bisect_right(ends, place) for place in places)


def readings(text: str, letters: Set[str] | None = None) -> Iterator[View]:
    """Yield the views of a text, and those with characters outside of ASCII also folded.

    Args:
        letters: those that the reader looks for; views are folded only if that can yield one of them.
    """
    for view in views(text):
        yield view
        if not view.text.isascii() and (letters is None or folds_into(view.text, letters)):
            yield _FoldedView(view)


def views(text: str) -> Iterator[View]:
    """Yield the readings of a text with white space and without invisible characters, from the least decoded."""
    view = shown = View(text)
    for _ in range(_ROUNDS):
        yield from _without_invisible(view)
        # What hides inside of an encoded character is removed before the text is decoded.
        shown = _as_shown(shown)
        if shown is not view:
            yield shown
        decoded = _decoded(view)
        decoded_shown = decoded if shown is view else _decoded(shown)
        if decoded is view and decoded_shown is shown:
            return
        view, shown = decoded, decoded_shown


def _decoded(view: View) -> View:
    """Return a view with its codes of one kind decoded; the same view if it has none."""
    for sign, pattern in _ENCODINGS:
        if sign in view.text and (decoded := view.changed(pattern, _meant)) is not view:
            return decoded
    return view


def _without_invisible(view: View) -> Iterator[View]:
    """Yield a view without invisible characters; where a terminal sequence ends can be read in several ways."""
    if not view.has_invisible:
        yield view
        return
    yield view.changed(INVISIBLE, _nothing)
    for sequences in (TERMINAL_SEQUENCE, SEQUENCE_START, INTRODUCER):
        without = view.changed(sequences, _nothing)
        if without is not view:
            yield without.changed(INVISIBLE, _nothing)


def _as_shown(view: View) -> View:
    """Return a view without terminal sequences and invisible characters, as reports show a text."""
    if not view.has_invisible:
        return view
    return view.changed(TERMINAL_SEQUENCE, _nothing).changed(INVISIBLE, _nothing)


def _nothing(found: str) -> str:  # noqa: ARG001 - replaces any match
    return ""


def _meant(found: str) -> str:
    """Return what an encoded character stands for; a byte that is none becomes the character with its number."""
    if len(found) > len(r"\xff") and found[0] in "%\\" and found[1] not in "uU":
        return _of_bytes(bytes(int(match[1] or match[2], 16 if match[1] else 8) for match in _BYTE.finditer(found)))
    if found[0] == "%":
        return chr(int(found[1:].lstrip("uU"), 16))
    if found[0] == "&":
        return html.unescape(found)
    kind, digits = found[1], found[2:].strip("{}")
    if digits and kind in "uUx":
        code = int(digits, 16)
        return chr(code) if code <= 0x10FFFF else ""
    if kind.isdigit() and found[1:].isascii() and len(found) > 2:
        return chr(int(found[1:], 8))
    return _CONTROLS.get(kind, kind)


def _of_bytes(octets: bytes) -> str:
    try:
        return octets.decode("utf-8")
    except ValueError:
        return octets.decode("latin-1")


def _lower(text: str) -> str:
    """Return the text in lower case, with as many characters."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)
