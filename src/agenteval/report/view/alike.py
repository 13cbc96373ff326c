"""Finds out whether two errors or reasons say the same."""

from __future__ import annotations

import re

# Quotes, ids, addresses and numbers vary between cases with the same cause. An apostrophe in a word is no quote.
_QUOTE = re.compile(r"""["][^"]*"|`[^`]*`|“[^”]*”|«[^»]*»|'(?<!\w')[^']*'(?!\w)|‘(?<!\w‘)[^’]*’(?!\w)""")
_VARIES = re.compile(r"\d|@|://")
_ADDRESS = re.compile(r"\w+://\S+|[^\s@]+@[^\s@]+")
_ID_OR_NUMBER = re.compile(r"(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{7,}|\d+(?:[.,:]\d+)*")


def alike(text: str) -> str:
    """Return a text with ``#`` in the place of numbers, quotes, ids and addresses, on one line."""
    words = _QUOTE.sub("#", text).split()
    return " ".join(_without_ids(word) if _VARIES.search(word) else word for word in words)


def _without_ids(word: str) -> str:
    return _ID_OR_NUMBER.sub("#", _ADDRESS.sub("#", word))
