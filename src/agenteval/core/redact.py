"""Masks secrets in texts: known values as programs usually write them, and credentials with a published form."""

from __future__ import annotations

import base64
import json
import re
import string
from collections.abc import Iterable, Iterator
from html import escape as html_escape
from typing import Any
from urllib.parse import quote, quote_plus

MASK = "***"

# Secrets with as many characters are masked anywhere; shorter ones if they stand alone as a word, and the shortest
# never, because reports would be unreadable.
_LENGTH_ANYWHERE = 6
_MINIMUM_LENGTH = 3

# Each line of a key file is a secret as well; shorter lines are often markup, such as a brace.
_MINIMUM_LINE = 8

_URL_SAFE = str.maketrans("+/", "-_")

# For forms of letters, digits and hyphens, which names in words could have too.
_WITH_DIGIT = r"(?=[A-Za-z_-]{0,40}[0-9])"
_RANDOM = _WITH_DIGIT + r"(?=[a-z0-9_-]{0,40}[A-Z])"

_WORD = r"[A-Za-z0-9_-]"

# The published forms of credentials: issuers give them fixed prefixes and lengths, so that they are recognised in any
# text. Each form has three parts, around a character that is rare in texts: searching this character is several times
# as fast as searching the characters before it, which have a fixed length.
_FORMS = (
    # GitHub; tokens of apps can be JSON Web Tokens after the prefix.
    ("gh[opru]", "_", r"[A-Za-z0-9]{36,}"),
    ("ghs", "_", r"[A-Za-z0-9._-]{36,}"),
    ("github", "_", r"pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59,}"),
    # GitLab
    ("glpat", "-", rf"{_WITH_DIGIT}{_WORD}{{20,}}(?:\.[a-z0-9]{{2,}}){{0,2}}"),
    # OpenAI, Anthropic, and the many that use their form; Langfuse
    ("sk", "-", r"[A-Za-z0-9]{32,}"),
    ("sk", "-", rf"(?:ant|proj|svcacct|admin)-{_RANDOM}{_WORD}{{40,}}"),
    ("sk", "-", r"or-v1-[a-f0-9]{64,}"),
    ("[sp]k", "-", r"lf-[a-f0-9]{8}-(?:[a-f0-9]{4}-){3}[a-f0-9]{12}"),
    # Groq, xAI, Hugging Face, Replicate
    ("gsk", "_", r"[A-Za-z0-9]{52,}"),
    ("xai", "-", r"[A-Za-z0-9]{80,}"),
    ("hf", "_", r"[A-Za-z0-9]{34,}"),
    ("r8", "_", r"[A-Za-z0-9]{37,}"),
    # npm, PyPI
    ("npm", "_", r"[A-Za-z0-9]{36,}"),
    ("pypi", "-", rf"AgE{_WORD}{{60,}}"),
    # Stripe
    ("[sr]k", "_", r"live_[A-Za-z0-9]{16,}"),
    # Slack
    ("xox[abeoprs]", "-", rf"{_WITH_DIGIT}[A-Za-z0-9-]{{16,}}"),
    ("xapp", "-", r"[0-9]-[A-Z0-9]{6,}-[0-9]{6,}-[A-Za-z0-9]{16,}"),
    ("https://hooks", ".", r"slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9_-]{6,}/[A-Za-z0-9/_-]{16,}"),
    # Amazon, Google
    ("A[KS]I", "A", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("A", "I", rf"za{_WORD}{{35}}"),
    ("GOCSPX", "-", rf"{_WORD}{{28}}"),
    # JSON Web Tokens; an encrypted one has five parts.
    ("(?<![_-])ey", "J", rf"{_WORD}{{8,}}\.{_WORD}{{8,}}\.{_WORD}{{16,}}(?:\.{_WORD}+\.{_WORD}+)?"),
    # Private keys, whole or without their ends
    (
        "-----BEGI",
        "N",
        r" [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----\s{0,9}(?:[\w-]{1,30}: .{0,200}\s{1,4}){0,5}"
        r"[A-Za-z0-9+/=]{16,}[A-Za-z0-9+/=\s]*(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?",
    ),
)

# No letter or digit, but the end of a terminal's colour.
_BEFORE = r"(?:(?<![A-Za-z0-9])|(?<=[0-9\[]m))"
_STARTS = re.compile(
    "|".join(dict.fromkeys(rf"{re.escape(sign)}(?<={before}{re.escape(sign)})" for before, sign, _ in _FORMS))
)
_FORM = re.compile(
    "|".join(
        rf"{re.escape(sign)}(?<={_BEFORE}({before}){re.escape(sign)})(?:{rest})" for before, sign, rest in _FORMS
    )
)
# A start and the first character after it.
_LONGEST_START = 16

# An access key of Amazon has two parts, and only the first one has a form.
_AMAZON_ID = re.compile("A[KS]IA[A-Z0-9]{16}")
_AMAZON_SECRET = re.compile(r"(?<![A-Za-z0-9/+=])(?![0-9a-f]+\b)[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")
_NEXT_TO = 200

_KEY_START = "-----BEGIN"
_KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")

_CHARACTERS = f"{string.ascii_letters}{string.digits}_-./+=:"
# JSON Web Tokens have no limit; no longer ones are usual.
_LONGEST_FORM = 4096


class Redactor:
    """Masks secret values in every text before it is stored, cut or shown.

    A value is recognised as it is, with the escapes of JSON, Python, addresses and HTML, in base64 (also inside a
    longer encoded text), and by each of its longer lines. Credentials with a published form, such as tokens of
    GitHub, are masked also if their values are not known.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        parts = {part for secret in secrets for part in _parts(secret)}
        long = {part for part in parts if len(part) >= _LENGTH_ANYWHERE}
        self._forms = _Index({form for part in long for form in _forms(part) if len(form) >= _LENGTH_ANYWHERE})
        words = "|".join(sorted(re.escape(part) for part in parts - long if len(part) >= _MINIMUM_LENGTH))
        # An underscore separates words too.
        self._words = re.compile(rf"(?<![^\W_])(?:{words})(?![^\W_])") if words else None

    def __repr__(self) -> str:
        return "Redactor(…)"

    def __call__(self, text: str) -> str:
        """Return the text with every secret replaced by ``***``."""
        pieces: list[str] = []
        at = 0
        for begin, end in self._spans(text):
            pieces += (text[at:begin], MASK)
            at = end
        return "".join((*pieces, text[at:])) if pieces else text

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
        try:
            text = str(value)
        except ValueError:
            # Python does not write numbers of more than some thousand digits in decimal.
            text = hex(int(value))
        masked = self(text)
        return value if masked == text else masked

    def complete(self, text: str) -> int:
        """Return how much of a text is safe to show before the text after it is known.

        The rest may be the beginning of a secret.
        """
        most = max((_overlap(text, form) for form in self._forms), default=0)
        end = min(len(text) - most, _unfinished_at(text))
        # The end of a whole secret can look like the beginning of another one.
        return next((begin for begin, last in self._spans(text) if begin < end < last), end)

    def remains(self, text: str) -> int:
        """Return how much of the beginning of a text may be the end of a secret, if text before it is missing."""
        return max([_rest_of_unfinished(text), *(_overlap(form, text) for form in self._forms)])

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        begin, end = -1, -1
        for first, last in sorted(self._found(text)):
            if first < end:
                end = max(end, last)
                continue
            if end >= 0:
                yield begin, end
            begin, end = first, last
        if end >= 0:
            yield begin, end

    def _found(self, text: str) -> Iterator[tuple[int, int]]:
        if _STARTS.search(text) is not None:
            yield from _credentials_at(text)
        if self._words:
            yield from (match.span() for match in self._words.finditer(text))
        for form in self._forms.inside(text):
            at = text.find(form)
            while at >= 0:
                yield at, at + len(form)
                at = text.find(form, at + 1)


class _Index:
    """Finds which of many forms a text contains, in a time that hardly depends on their number.

    Short pieces are taken from the text at equal distances. The distance is so small that a form in the text contains
    one of the pieces, near its beginning.
    """

    def __init__(self, forms: set[str]) -> None:
        self._by_piece: dict[str, set[str]] = {}
        self._forms = forms
        shortest = min(map(len, forms), default=_LENGTH_ANYWHERE)
        self._length = max(4, (shortest + 1) // 2)
        self._distance = shortest - self._length + 1
        for form in forms:
            for at in range(self._distance):
                self._by_piece.setdefault(form[at : at + self._length], set()).add(form)
        self._pieces = frozenset(self._by_piece)

    def __iter__(self) -> Iterator[str]:
        return iter(self._forms)

    def inside(self, text: str) -> list[str]:
        if not self._forms:
            return []
        length = self._length
        sampled = self._pieces.intersection(
            text[at : at + length] for at in range(0, len(text) - length + 1, self._distance)
        )
        return [form for form in set().union(*map(self._by_piece.__getitem__, sampled)) if form in text]


def _parts(secret: str) -> set[str]:
    """Return a secret without white space around it, and each of its longer lines."""
    lines = {line for line in map(str.strip, secret.splitlines()) if len(line) >= _MINIMUM_LINE}
    return {secret.strip()} | lines


def _forms(secret: str) -> set[str]:
    """Return how programs usually write a secret."""
    octets = secret.encode("utf-8", "surrogatepass")
    in_addresses = {quote(octets, safe=""), quote(octets), quote_plus(octets)}
    forms = {
        secret,
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        # The arguments of a tool call are JSON in JSON.
        json.dumps(json.dumps(secret)[1:-1])[1:-1],
        repr(secret)[1:-1],
        *in_addresses,
        *(re.sub("%[0-9A-F]{2}", lambda code: code[0].lower(), form) for form in in_addresses),
        html_escape(secret, quote=False),
        html_escape(secret),
        html_escape(secret).replace("&#x27;", "&#39;"),
        *_base64(octets),
    }
    # Results are searched as JSON, in which a text has its escapes once more.
    return forms | {json.dumps(form, ensure_ascii=False)[1:-1] for form in forms}


def _base64(octets: bytes) -> Iterator[str]:
    """Yield the characters that bytes become in base64, by their distance from the start of the encoded text."""
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + octets).decode("ascii")
        # The first and last character can also contain bits of the neighbours.
        core = encoded[-(-8 * offset // 6) : 8 * (offset + len(octets)) // 6]
        yield core
        yield core.translate(_URL_SAFE)


def _overlap(first: str, second: str) -> int:
    """Return the number of characters that the first text ends and the second begins with."""
    most = min(len(first), len(second))
    return next((size for size in range(most, 0, -1) if first.endswith(second[:size])), 0)


def _credentials_at(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the credentials with a published form begin and end."""
    for match in _FORM.finditer(text):
        begin, end = match.start(match.lastindex or 0), match.end()
        yield begin, end
        if _AMAZON_ID.match(text, begin):
            around = _AMAZON_SECRET.finditer(text, max(0, begin - _NEXT_TO), end + _NEXT_TO)
            yield from (secret.span() for secret in around)


def _unfinished_at(text: str) -> int:
    """Return where a credential may begin that continues after the text; the length of the text if none does."""
    word = len(text.rstrip(_CHARACTERS))
    begin = word if _STARTS.search(text, word) else max(word, len(text) - _LONGEST_START)
    key = text.rfind(_KEY_START)
    if key >= 0 and not _KEY_END.search(text, key):
        begin = min(begin, key)
    amazon = _AMAZON_ID.search(text, max(0, len(text) - _NEXT_TO - _LONGEST_START))
    return min(begin, amazon.start()) if amazon else begin


def _rest_of_unfinished(text: str) -> int:
    """Return how much of the beginning of a text may be the end of a credential that begins before it."""
    word = len(text) - len(text.lstrip(_CHARACTERS))
    key = _KEY_END.search(text)
    if key and _KEY_START not in text[: key.start()]:
        return key.end()
    return min(word, _LONGEST_FORM)
