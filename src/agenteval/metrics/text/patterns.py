"""Regular expressions with a time limit: the agent chooses the text, and some pairs take for ever."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import regex

from agenteval.metrics.base import MetricError
from agenteval.metrics.values import shown

_LIMIT_S = 1.0
# Escapes stay, as do the braces of a repetition; any other brace is a character. The regex package would take
# ``{e}`` for a permission to differ from the text.
_BRACE = re.compile(r"\\N\{[^}]*\}|\\.|\{(?:\d+,?\d*|,\d*)\}|(\{)", re.DOTALL)


def full_match(pattern: str, text: str) -> bool:
    """``re.fullmatch``.

    Raises:
        MetricError: it takes too long.
    """
    return _holds(regex.fullmatch, pattern, text)


def found(pattern: str, text: str) -> bool:
    """``re.search``.

    Raises:
        MetricError: it takes too long.
    """
    return _holds(regex.search, pattern, text)


def _holds(look: Callable[..., Any], pattern: str, text: str) -> bool:
    try:
        return look(_standard(pattern), text, timeout=_LIMIT_S) is not None
    except TimeoutError:
        raise MetricError(f"the pattern {pattern!r} takes too long on {shown(text)}") from None


@lru_cache
def _standard(pattern: str) -> str:
    """The pattern with the braces escaped that the standard library takes for characters."""
    return _BRACE.sub(lambda match: r"\{" if match.group(1) else match.group(), pattern)
