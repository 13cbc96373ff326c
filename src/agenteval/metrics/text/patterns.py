"""Regular expressions with a time limit: some patterns need exponential time on some texts."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import regex

from agenteval.metrics.base import MetricError
from agenteval.metrics.values import shown

_LIMIT_S = 1.0
# Escapes and braces of repetitions stay; any other brace is a character. The regex package would read ``{e}``
# as permission for errors.
_BRACE = re.compile(r"\\N\{[^}]*\}|\\.|\{(?:\d+,?\d*|,\d*)\}|(\{)", re.DOTALL)


def full_match(pattern: str, text: str) -> bool:
    """Match like ``re.fullmatch``.

    Raises:
        MetricError: the time limit is exceeded.
    """
    return _holds(regex.fullmatch, pattern, text)


def found(pattern: str, text: str) -> bool:
    """Match like ``re.search``.

    Raises:
        MetricError: the time limit is exceeded.
    """
    return _holds(regex.search, pattern, text)


def _holds(look: Callable[..., Any], pattern: str, text: str) -> bool:
    try:
        return look(_standard(pattern), text, timeout=_LIMIT_S) is not None
    except TimeoutError:
        raise MetricError(f"the pattern {pattern!r} takes too long on {shown(text)}") from None


@lru_cache
def _standard(pattern: str) -> str:
    """Return the pattern with those braces escaped that the standard library reads as characters."""
    return _BRACE.sub(lambda match: r"\{" if match.group(1) else match.group(), pattern)
