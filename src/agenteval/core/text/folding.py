"""Makes letters equal that readers take for the same: composed or not, accented, wide, ligatures, either case."""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from functools import cache
from unicodedata import category, combining, normalize

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
