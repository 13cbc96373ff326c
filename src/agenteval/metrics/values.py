"""Comparison and display of JSON values."""

from __future__ import annotations

from typing import Any

from agenteval.core.masking import beginning, mask

_SHOWN = 80


def literal_equal(expected: Any, actual: Any) -> bool:
    """Return whether two values are equal; 1 equals 1.0, but a boolean equals only a boolean.

    An integer and a float are compared as floats, so 2**53 + 1 equals 9007199254740992.0.
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


def shown(value: Any) -> str:
    """Return a value in the form for reasons: short, and with quotes around texts."""
    if isinstance(value, str):
        value = mask(value)
        value = value if len(value) <= _SHOWN else beginning(value, _SHOWN - 1) + "…"
    text = mask(repr(value))
    return text if len(text) <= _SHOWN + 2 else beginning(text, _SHOWN - 1) + "…"
