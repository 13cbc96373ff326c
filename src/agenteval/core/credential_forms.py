"""Credentials that have a published form, so that they are recognised in any text.

Issuers give their credentials fixed prefixes and lengths for this purpose. A longer credential has the form too.
"""

from __future__ import annotations

import re
import string

# For forms of letters, digits and hyphens, which names in words could have too.
_WITH_DIGIT = r"(?=[A-Za-z_-]{0,40}[0-9])"
_RANDOM = _WITH_DIGIT + r"(?=[a-z0-9_-]{0,40}[A-Z])"

_WORD = r"[A-Za-z0-9_-]"

# Each form in three parts, around a character that is rare in texts: searching this character is several times as
# fast as searching the characters before it, which have a fixed length.
_FORMS = (
    # GitHub; tokens of apps can be JSON Web Tokens after the prefix.
    ("gh[opru]", "_", r"[A-Za-z0-9]{36,}"),
    ("ghs", "_", r"[A-Za-z0-9._-]{36,}"),
    ("github", "_", r"pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59,}"),
    # GitLab
    ("glpat", "-", rf"{_WITH_DIGIT}{_WORD}{{20,}}(?:\.[a-z0-9]{{2,}}){{0,2}}"),
    # OpenAI, Anthropic, and the many that use their form
    ("sk", "-", r"[A-Za-z0-9]{32,}"),
    ("sk", "-", rf"(?:ant|proj|svcacct|admin)-{_RANDOM}{_WORD}{{40,}}"),
    ("sk", "-", r"or-v1-[a-f0-9]{64,}"),
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

_STARTS = re.compile(
    "|".join(dict.fromkeys(rf"{re.escape(sign)}(?<={before}{re.escape(sign)})" for before, sign, _ in _FORMS))
)
_FORM = re.compile(
    "|".join(
        rf"{re.escape(sign)}(?<=(?<![A-Za-z0-9])({before}){re.escape(sign)})(?:{rest})"
        for before, sign, rest in _FORMS
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
_LONGEST = 4096


def may_show_credential(text: str) -> bool:
    """Return whether a text contains the start of a form, which is a quick check."""
    return _STARTS.search(text) is not None


def credentials_at(text: str) -> list[tuple[int, int]]:
    """Return where the credentials of a text begin and end, in order; none overlap."""
    found: list[tuple[int, int]] = []
    for match in _FORM.finditer(text):
        begin, end = match.start(match.lastindex or 0), match.end()
        found.append((begin, end))
        if _AMAZON_ID.match(text, begin):
            around = _AMAZON_SECRET.finditer(text, max(0, begin - _NEXT_TO), end + _NEXT_TO)
            found += [secret.span() for secret in around]
    return sorted(set(found))


def unfinished_at(text: str) -> int:
    """Return where a credential may begin that continues after the text; the length of the text if none does."""
    word = len(text.rstrip(_CHARACTERS))
    begin = word if _STARTS.search(text, word) else max(word, len(text) - _LONGEST_START)
    key = text.rfind(_KEY_START)
    if key >= 0 and not _KEY_END.search(text, key):
        begin = min(begin, key)
    amazon = _AMAZON_ID.search(text, max(0, len(text) - _NEXT_TO - _LONGEST_START))
    return min(begin, amazon.start()) if amazon else begin


def rest_of_unfinished(text: str) -> int:
    """Return how much of the beginning of a text may be the end of a credential that begins before it."""
    word = len(text) - len(text.lstrip(_CHARACTERS))
    key = _KEY_END.search(text)
    if key and _KEY_START not in text[: key.start()]:
        return key.end()
    return min(word, _LONGEST)
