"""Reads ``.env`` files."""

from __future__ import annotations

import re

_LINE = re.compile(
    r"""^\s* (?:export\s+)? (?P<name>[A-Za-z_][A-Za-z0-9_.]*) \s*=\s*
        (?: "(?P<double>(?:[^"\\]|\\.)*)" | '(?P<single>[^']*)' | (?P<bare>[^\r\n]*?) )
        \s* (?:(?<=\s)\#.*)? $""",
    re.VERBOSE,
)

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def parse_dotenv(text: str) -> dict[str, str]:
    """Return the variables of a file; other lines are ignored, and the last of repeated names counts."""
    found = (_LINE.match(line) for line in text.splitlines())
    return {match["name"]: _value(match) for match in found if match}


def _value(match: re.Match[str]) -> str:
    if match["double"] is not None:
        return re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), match["double"])
    return match["bare"] if match["single"] is None else match["single"]
