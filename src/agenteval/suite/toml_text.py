"""Parses TOML, and refuses what would keep the parser busy for ever."""

from __future__ import annotations

import re
import tomllib
from typing import Any

_MOST_PARTS = 200
# The parser copies all parts of a key for each further one.
_LONG_KEY = re.compile(
    rf"""(?<![\w-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){{{_MOST_PARTS}}}""",
)


def parse_toml(text: str) -> dict[str, Any]:
    """The values of a TOML text.

    Raises:
        ValueError: it is no TOML (``tomllib.TOMLDecodeError``), or has a key of hundreds of parts.
        RecursionError: it is nested too deeply.
    """
    found = _LONG_KEY.search(text)
    if found:
        line = text.count("\n", 0, found.start()) + 1
        raise tomllib.TOMLDecodeError(
            f"a key is nested too deeply: more than {_MOST_PARTS:,} names joined by dots (at line {line}, column 1)"
        )
    return tomllib.loads(text)
