"""Checks regular expressions of suites before they are used."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from re import _parser  # type: ignore[attr-defined] # the only way to the lengths of parts, in all Python versions
from typing import Any

#: Characters. Fixed repetitions multiply, and the engine writes their text out: 65,000 times 65,000 need all memory.
LONGEST_REQUIRED = 100_000
# Short texts that have nothing in common.
_SAMPLES = ("", "\n", "a", "7 \u2603")


def pattern_problem(pattern: str) -> str | None:
    """Return why a text cannot be used as a regular expression; ``None`` if it can."""
    try:
        with warnings.catch_warnings():
            # Warnings for patterns whose meaning may change in a later Python.
            warnings.simplefilter("ignore")
            re.compile(pattern)
            longest = max(_required(_parser.parse(pattern)))
    except (re.error, RecursionError, OverflowError, MemoryError) as error:
        return str(error) or type(error).__name__
    if longest > LONGEST_REQUIRED:
        return f"a part of it requires {longest:,} characters, at most {LONGEST_REQUIRED:,} are allowed"
    return None


def matches_everything(pattern: str, flags: int = 0) -> bool:
    """Return whether a valid pattern is found in every text, such as an empty one or ``.*``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = re.compile(pattern, flags)
    return all(compiled.search(text) for text in _SAMPLES)


def _required(part: Any) -> Iterator[int]:
    """Yield the least length that each part of a parsed pattern matches; those of lookarounds included."""
    if isinstance(part, _parser.SubPattern):
        yield part.getwidth()[0]
        part = part.data
    if isinstance(part, list | tuple):
        for item in part:
            yield from _required(item)
