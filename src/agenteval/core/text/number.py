"""Reads numbers in texts, as HoloDeck's metric ``numeric`` does."""

from __future__ import annotations

# Thousands separators: comma, underscore, no-break space, narrow no-break space.
_SEPARATORS = ",_\u00a0\u202f"
_NO_SEPARATORS = str.maketrans("", "", _SEPARATORS)


def parse_number(text: str, *, accept_percent: bool, accept_thousands_separators: bool) -> float:
    """Return the number in a text.

    Args:
        text: the whole text; white space around the number is ignored.
        accept_percent: a trailing ``%`` divides by 100.
        accept_thousands_separators: ``,``, ``_`` and no-break spaces are removed anywhere in the number.

    Raises:
        ValueError: the text is not a number; the message continues "the text …".
    """
    number = text.strip()
    if not number:
        raise ValueError("is empty, not a number")
    divisor = 1.0
    if number.endswith("%"):
        if not accept_percent:
            raise ValueError("is a percentage, and accept_percent is off")
        number = number[:-1].strip()
        divisor = 100.0
    if any(character in number for character in _SEPARATORS):
        if not accept_thousands_separators:
            raise ValueError("has thousands separators, and accept_thousands_separators is off")
        number = number.translate(_NO_SEPARATORS)
    try:
        return float(number) / divisor
    except ValueError:
        raise ValueError("is not a number") from None
