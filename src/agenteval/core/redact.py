"""Masks secrets in texts."""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

from agenteval.core.credentials import credentials_at, may_show_credential, rest_of_unfinished, unfinished_at
from agenteval.core.readings import View, folded, readings, views

MASK = "***"

#: Secrets with as many characters are masked anywhere; shorter ones if they stand alone as a word.
LENGTH_ANYWHERE = 6

#: Shorter secrets are not masked, because masking them would make reports unreadable.
MINIMUM_LENGTH = 3

# Each line of a key file is a secret as well; shorter lines are often markup, such as a brace.
_MINIMUM_LINE = 8

# Longer secrets of digits are not numbers that programs write with separators.
_LONGEST_NUMBER = 40

# Such as `&#x00073;`.
_LONGEST_CODE = 12

_CODE_START = re.compile(r"[%&\\\x1b\x9b]")

_URL_SAFE = str.maketrans("+/", "-_")


class Redactor:
    """Masks secret values in every text before it is stored, cut or shown.

    A secret is recognised with separators between its characters (terminal sequences, control and invisible
    characters, combining marks, white space), in upper and lower case, in every Unicode normal form and width, and
    encoded: percent codes, HTML entities, escapes of JSON and Python, all of them nested or in parts; base64 and
    base32, also inside a longer encoded text; hexadecimal digits; base64 of base64 or of hexadecimal digits. A secret
    of digits is recognised as a number too. Credentials with a published form, such as tokens of GitHub, are masked
    also if their values are not known.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        parts = {part for secret in secrets for part in _parts(secret)}
        bare = {part: next(views(part)).without_white_space().text for part in parts}
        long = [part for part in parts if len(bare[part]) >= LENGTH_ANYWHERE]
        self._forms = _Index({form for part in long for form in _forms(part)})
        self._hex = _Index({octets.hex() for part in long for octets in _octets(part) | _encoded_octets(part)})
        short = sorted(
            {
                view.text.strip()
                for part in parts
                if MINIMUM_LENGTH <= len(bare[part]) < LENGTH_ANYWHERE
                for view in readings(part)
            }
        )
        words = "|".join(map(re.escape, short))
        # An underscore separates words too.
        self._words = re.compile(rf"(?<![^\W_])(?:{words})(?![^\W_])", re.IGNORECASE) if short else None
        self._letters = frozenset("".join((*self._forms, *self._hex, words.casefold())))

    def __repr__(self) -> str:
        return "Redactor(…)"

    def __call__(self, text: str) -> str:
        """Return the text with every secret replaced by ``***``."""
        spans = self._spans(text)
        if not spans:
            return text
        pieces: list[str] = []
        at = 0
        for begin, end in spans:
            pieces += (text[at:begin], MASK)
            at = end
        return "".join((*pieces, text[at:]))

    def finds(self, text: str) -> bool:
        """Return whether the text contains a secret."""
        return next(self._found(text), None) is not None

    def data(self, value: Any) -> Any:
        """Return a JSON-like value with every text masked, including keys; a number with a secret becomes a text."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, dict):
            return {self.data(key): self.data(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.data(item) for item in value]
        return self.number(value) if type(value) in {int, float} else value

    def number(self, value: float) -> float | str:
        """Return the number, or its text with every secret masked if it contains one."""
        masked = self(text := _digits(value))
        return value if masked == text else masked

    def complete(self, text: str) -> int:
        """Return how much of a text is safe to show before the text after it is known.

        The rest may be the beginning of a secret.
        """
        # The last characters may be a part of an encoded character or of a terminal sequence.
        most = _LONGEST_CODE if _CODE_START.search(text, max(0, len(text) - _LONGEST_CODE)) else len("0x")
        known = min(self._open_end(text, len(text) - cut) for cut in range(min(most, len(text)) + 1))
        known = min(known, unfinished_at(text))
        # The end of a whole secret can look like the beginning of another one.
        return next((begin for begin, end in self._spans(text) if begin < known < end), known)

    def remains(self, text: str) -> int:
        """Return how much of the beginning of a text may be the end of a secret, if text before it is missing."""
        most = min(_LONGEST_CODE, max(len(text) - 1, 0))
        known = max((cut + self._open_start(text[cut:]) for cut in range(most + 1)), default=0)
        return max(known, rest_of_unfinished(text))

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Return the places to mask, sorted and without overlaps."""
        return list(_merged(sorted({span for view, found in self._found(text) for span in view.sources(found)})))

    def _open_end(self, text: str, end: int) -> int:
        places = [len(text)]
        for bare, forms in self._readings(text[:end]):
            size = max((_overlap(bare.text, form) for form in forms), default=0)
            if size:
                places.append(bare.sources([(len(bare.text) - size, len(bare.text))])[0][0])
        return min(places)

    def _open_start(self, text: str) -> int:
        places = [0]
        for bare, forms in self._readings(text):
            size = max((_overlap(form, bare.text) for form in forms), default=0)
            if size:
                places.append(bare.sources([(0, size)])[0][1])
        return max(places)

    def _readings(self, text: str) -> Iterator[tuple[View, _Index]]:
        for view in readings(text, self._letters) if text and self._forms else ():
            yield view.without_white_space(), self._forms
            yield view.hex_digits(), self._hex

    def _found(self, text: str) -> Iterator[tuple[View, list[tuple[int, int]]]]:
        shows_credential = may_show_credential(text)
        if not (shows_credential or self._letters):
            return
        for view in readings(text, self._letters):
            if shows_credential and (places := credentials_at(view.text)):
                yield view, places
            if self._words and (words := [match.span() for match in self._words.finditer(view.text)]):
                yield view, words
            if not self._forms:
                continue
            for bare, forms in ((view.without_white_space(), self._forms), (view.hex_digits(), self._hex)):
                if inside := forms.inside(bare.text):
                    yield (
                        bare,
                        list(_merged(sorted(span for form in inside for span in _occurrences(form, bare.text)))),
                    )


class _Index:
    """Finds which of many forms a text contains, in a time that hardly depends on their number.

    Short pieces are taken from the text at equal distances. The distance is so small that a form in the text contains
    one of the pieces, near its beginning.
    """

    def __init__(self, forms: Iterable[str]) -> None:
        self._by_piece: dict[str, set[str]] = {}
        self._forms = frozenset(forms)
        shortest = min(map(len, self._forms), default=0)
        self._length = max(4, (shortest + 1) // 2)
        self._distance = shortest - self._length + 1
        for form in self._forms:
            for at in range(self._distance):
                self._by_piece.setdefault(form[at : at + self._length], set()).add(form)
        self._pieces = frozenset(self._by_piece)

    def __bool__(self) -> bool:
        return bool(self._by_piece)

    def __iter__(self) -> Iterator[str]:
        return iter(self._forms)

    def inside(self, text: str) -> list[str]:
        """Return the forms in a text."""
        length = self._length
        sampled = self._pieces.intersection(
            text[at : at + length] for at in range(0, len(text) - length + 1, self._distance)
        )
        if not sampled:
            return []
        return sorted(form for form in set().union(*map(self._by_piece.__getitem__, sampled)) if form in text)


def _parts(secret: str) -> set[str]:
    """Return a secret without white space around it, and each of its longer lines."""
    lines = {line for line in map(str.strip, secret.splitlines()) if len(line) >= _MINIMUM_LINE}
    return {secret.strip()} | lines


def _forms(secret: str) -> set[str]:
    """Return what a secret becomes in readings without white space."""
    spellings = {text for variant in _variants(secret) for text in (variant, json.dumps(variant)[1:-1])}
    spellings |= {secret.replace(" ", "+"), *_number_spellings(secret)}
    forms = {view.without_white_space().text for text in spellings for view in readings(text)}
    # Percent codes are read as one character for each byte, and JSON escapes as one for each UTF-16 code unit.
    # These are not folded: a folded byte can be any letter.
    for variant in _variants(secret):
        for text in (_bytes(variant).decode("latin-1"), _code_units(variant)):
            forms |= {view.without_white_space().text for view in views(text)}
    forms |= {form.lower() for octets in _octets(secret) for form in (*_base64(octets), *_base32(octets))}
    forms |= {form.lower() for octets in _encoded_octets(secret) for form in _base64(octets)}
    return {form for form in forms if len(form) >= LENGTH_ANYWHERE}


def _variants(secret: str) -> set[str]:
    """Return a secret in every Unicode normal form."""
    if secret.isascii():
        return {secret}
    return {secret, folded(secret), *(unicodedata.normalize(form, secret) for form in ("NFC", "NFD", "NFKC", "NFKD"))}


def _number_spellings(secret: str) -> Iterator[str]:
    """Yield how programs write the number that a secret of digits is."""
    digits = secret.lstrip("0")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _LONGEST_NUMBER:
        return
    yield digits
    yield f"{digits[0]}.{digits[1:].rstrip('0')}e"
    yield from (f"{int(digits):,}".replace(",", sign) for sign in ",._'")


def _digits(value: float) -> str:
    try:
        return str(value)
    except ValueError:
        # Python does not write numbers of more than some thousand digits in decimal.
        return hex(int(value))


def _octets(secret: str) -> set[bytes]:
    """Return the bytes of a secret: in UTF-8 in every Unicode form and case, and in UTF-16."""
    variants = _variants(secret)
    spellings = {text for variant in variants for text in (variant, variant.lower(), variant.upper())}
    return {*map(_bytes, spellings), *(variant.encode("utf-16-le", "surrogatepass") for variant in variants)}


def _encoded_octets(secret: str) -> set[bytes]:
    """Return the bytes of a secret in base64 and in hexadecimal digits."""
    texts = (
        text
        for octets in map(_bytes, _variants(secret))
        for text in (*_base64(octets), octets.hex(), octets.hex().upper())
    )
    return {text.encode("ascii") for text in texts}


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _code_units(text: str) -> str:
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(chr(int.from_bytes(units[at : at + 2], "big")) for at in range(0, len(units), 2))


def _base64(octets: bytes) -> Iterator[str]:
    """Yield the characters that bytes become in base64, by their distance from the start of the encoded text."""
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + octets).decode("ascii")
        # The first and last character can also contain bits of the neighbours.
        core = encoded[-(-8 * offset // 6) : 8 * (offset + len(octets)) // 6]
        yield core
        yield core.translate(_URL_SAFE)


def _base32(octets: bytes) -> Iterator[str]:
    """Yield the characters that bytes become in base32, by their distance from the start of the encoded text."""
    for offset in range(5):
        encoded = base64.b32encode(bytes(offset) + octets).decode("ascii")
        yield encoded[-(-8 * offset // 5) : 8 * (offset + len(octets)) // 5]


def _overlap(first: str, second: str) -> int:
    """Return the number of characters that the first text ends and the second begins with."""
    most = min(len(first), len(second))
    return next((size for size in range(most, 0, -1) if first.endswith(second[:size])), 0)


def _occurrences(form: str, text: str) -> Iterator[tuple[int, int]]:
    at = text.find(form)
    while at >= 0:
        yield at, at + len(form)
        at = text.find(form, at + 1)


def _merged(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    begin, end = -1, -1
    for first, last in spans:
        if first < end:
            end = max(end, last)
            continue
        if end >= 0:
            yield begin, end
        begin, end = first, last
    if end >= 0:
        yield begin, end
