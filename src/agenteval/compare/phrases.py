"""Numbers and enumerations in the sentences about a comparison."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agenteval.core import escape

# Maximum number of cases or metrics in a sentence.
_NAMED = 3
_SMALLEST_P = 0.0001
_LONGEST_NAME = 80
_CODE = re.compile("`([^`]*)`")


def points(difference: float) -> str:
    """Format a difference of scores, 0..1, in percentage points."""
    number = f"{100 * abs(difference):.1f}".removesuffix(".0")
    return f"{number} point" if number == "1" else f"{number} points"


def signed_points(difference: float) -> str:
    """Format a difference of scores, 0..1, in percentage points with its sign."""
    return f"{100 * difference:+.1f}".replace("-", "−")


def p_text(p: float, limit: float) -> str:
    """Return ``p = 0.0041, needed ≤ 0.009``, with as many digits as the comparison needs."""
    if p < _SMALLEST_P <= limit:
        return f"p < {_SMALLEST_P}, needed ≤ {limit:g}"
    digits = next((number for number in range(2, 17) if (float(f"{p:.{number}g}") <= limit) is (p <= limit)), 17)
    return f"p = {p:.{digits}g}, needed ≤ {limit:g}"


def quoted(name: str) -> str:
    """Return a name for a sentence: one line of at most 80 characters between quotation marks."""
    return f"'{escape.one_line(name, _LONGEST_NAME)}'"


def without_markup(message: str) -> str:
    """Return a message with quotation marks instead of backticks: outputs show sentences as they are."""
    return _CODE.sub(r"'\1'", message)


def count(number: int, noun: str) -> str:
    """Return ``1 run`` or ``2 runs``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def some(names: Sequence[str], noun: str) -> str:
    """Return the first names as an enumeration, and how many there are besides."""
    more = f" and {_more(names, noun)}" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def first(texts: Sequence[str], noun: str) -> list[str]:
    """Return the first texts, and how many there are besides."""
    return [*texts[:_NAMED], *([_more(texts, noun)] if len(texts) > _NAMED else [])]


def _more(items: Sequence[str], noun: str) -> str:
    return count(len(items) - _NAMED, f"more {noun}")
