"""JSON values as metrics compare and show them."""

from __future__ import annotations

import re
from typing import Any

_SHOWN = 80
_FENCE = re.compile(r"```[\w-]*\s*")


def literal_equal(expected: Any, actual: Any) -> bool:
    """Equality where 1 is 1.0, but a boolean equals only a boolean.

    A whole number and a float are compared as floats, so that 2**53 + 1 is 9007199254740992.0.
    """
    if isinstance(expected, bool) or isinstance(actual, bool):
        return isinstance(expected, bool) and isinstance(actual, bool) and expected == actual
    if isinstance(expected, int | float) and isinstance(actual, int | float):
        return _same_number(expected, actual)
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(literal_equal, expected, actual))
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(
            literal_equal(value, actual[key]) for key, value in expected.items()
        )
    return type(expected) is type(actual) and bool(expected == actual)


def _same_number(expected: float, actual: float) -> bool:
    if type(expected) is type(actual):
        return expected == actual
    try:
        return float(expected) == float(actual)
    except OverflowError:
        return False


def unfenced(text: str) -> str:
    """What stands in the code fence (```) around a whole text; without one the text itself."""
    # By hand: an expression that looks for the end tries every blank on its way as a beginning of it.
    first, _, rest = text.strip().partition("\n")
    return rest[:-3].strip() if _FENCE.fullmatch(first) and rest.endswith("```") else text


def shown(value: Any) -> str:
    """A value as it stands in a reason: short, and with quotes around texts."""
    text = repr(value if not isinstance(value, str) or len(value) <= _SHOWN else value[: _SHOWN - 1] + "…")
    return text if len(text) <= _SHOWN + 2 else text[: _SHOWN - 1] + "…"
