"""Checks regular expressions of suites before they are used."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from re import _parser  # type: ignore[attr-defined] # the only way to the lengths of parts, in all Python versions
from typing import Any, Literal

#: Characters. Fixed repetitions multiply, and the engine writes their text out: 65,000 times 65,000 need all memory.
LONGEST_REQUIRED = 100_000
# Where a pattern is in a text: at its start, at its end, or anywhere after its start.
_Place = Literal["start", "end", "after"]
_BEGINNINGS = frozenset({_parser.AT_BEGINNING, _parser.AT_BEGINNING_STRING})
_ENDS = frozenset({_parser.AT_END, _parser.AT_END_STRING})
_REPEATS = frozenset({_parser.MAX_REPEAT, _parser.MIN_REPEAT})
# Pairs of classes that contain every character, as in ``[\s\S]``.
_OPPOSITES = tuple(
    frozenset({getattr(_parser, f"CATEGORY_{name}"), getattr(_parser, f"CATEGORY_NOT_{name}")})
    for name in ("SPACE", "DIGIT", "WORD")
)


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
    """Return whether a valid pattern is certainly found in every text, such as an empty one or ``.*``.

    It is if it can match nothing at the start or at the end of a text, or all of it in between. Patterns that look
    around are not among them: they check what they do not match.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parsed = _parser.parse(pattern, flags)
    return any(_after(parsed, place, parsed.state.flags) is not None for place in ("start", "end"))


def _after(parsed: Any, place: _Place | None, flags: int) -> _Place | None:
    """Return where a part of a pattern ends that begins at a place of any text; ``None`` if it may not match."""
    for kind, value in parsed:
        if place is None:
            return None
        place = _after_one(kind, value, place, flags)
    return place


def _after_one(kind: Any, value: Any, place: _Place, flags: int) -> _Place | None:
    if kind is _parser.AT:
        if value in _BEGINNINGS:
            return "start" if place == "start" else None
        return "end" if value in _ENDS and place != "start" else None
    if kind in _REPEATS:
        least, most, repeated = value
        if place == "start" and not least and most is _parser.MAXREPEAT and _is_any_character(repeated, flags):
            return "after"
        return place if not least else _after(repeated, place, flags)
    if kind is _parser.SUBPATTERN:
        _, added, removed, inner = value
        return _after(inner, place, (flags | added) & ~removed)
    if kind is _parser.BRANCH:
        ways = [_after(way, place, flags) for way in value[1]]
        return next((way for way in ("after", *ways) if way in ways and way is not None), None)
    return None


def _is_any_character(parsed: Any, flags: int) -> bool:
    if len(parsed) != 1:
        return False
    kind, value = parsed[0]
    if kind is _parser.SUBPATTERN:
        _, added, removed, inner = value
        return _is_any_character(inner, (flags | added) & ~removed)
    if kind is _parser.ANY:
        return bool(flags & re.DOTALL)
    classes = {item for name, item in value if name is _parser.CATEGORY} if kind is _parser.IN else set()
    return any(pair <= classes for pair in _OPPOSITES) and (_parser.NEGATE, None) not in value


def _required(part: Any) -> Iterator[int]:
    """Yield the least length that each part of a parsed pattern matches; those of lookarounds included."""
    if isinstance(part, _parser.SubPattern):
        yield part.getwidth()[0]
        part = part.data
    if isinstance(part, list | tuple):
        for item in part:
            yield from _required(item)
