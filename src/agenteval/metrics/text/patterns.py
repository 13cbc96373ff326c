"""Regular expressions with a time limit, because some patterns need exponential time on some texts.

Every search for a pattern of a suite goes through this module. :class:`PatternTimeouts` counts for a run which
patterns took too long, and ends their use.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from typing import Any

from agenteval.metrics.base import MetricError
from agenteval.metrics.values import shown
from agenteval.suite.model import Place

#: Seconds for one search.
LIMIT_S = 1.0
#: Time-outs of one pattern in a run; then no further answer is searched.
MOST_TIMEOUTS = 3
# Escapes and braces of repetitions are kept; other braces are plain characters. The regex package would interpret
# ``{e}`` as permission for errors.
_BRACE = re.compile(r"\\N\{[^}]*\}|\\.|\{(?:\d+,?\d*|,\d*)\}|(\{)", re.DOTALL)


class PatternGivenUpError(MetricError):
    """A pattern took too long on several answers of this run; no further answer is searched."""


@dataclass
class PatternTimeouts:
    """The patterns of one run that took too long, from any thread."""

    _counts: Counter[str] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    def add(self, pattern: str) -> None:
        """Count one time-out."""
        with self._lock:
            self._counts[pattern] += 1

    def is_given_up(self, pattern: str) -> bool:
        """Return whether the pattern took too long too often."""
        return self._counts[pattern] >= MOST_TIMEOUTS

    @contextmanager
    def counting(self, where: Place) -> Iterator[None]:
        """Count the time-outs in the block, also in threads that copy its context; ``where`` is for messages."""
        token = _COUNTING.set((self, where))
        try:
            yield
        finally:
            _COUNTING.reset(token)


_COUNTING: ContextVar[tuple[PatternTimeouts, Place] | None] = ContextVar("pattern_timeouts", default=None)


def full_match(pattern: str, text: str) -> bool:
    """Match like ``re.fullmatch``.

    Raises:
        MetricError: the time limit is exceeded.
    """
    import regex

    return _holds(regex.fullmatch, pattern, text)


def found(pattern: str, text: str) -> bool:
    """Match like ``re.search``.

    Raises:
        MetricError: the time limit is exceeded.
    """
    import regex

    return _holds(regex.search, pattern, text)


def _holds(look: Callable[..., Any], pattern: str, text: str) -> bool:
    counting = _COUNTING.get()
    if counting is not None and counting[0].is_given_up(pattern):
        raise PatternGivenUpError(_given_up(pattern, counting[1]))
    try:
        return look(_standard(pattern), text, timeout=LIMIT_S) is not None
    except TimeoutError:
        if counting is not None:
            counting[0].add(pattern)
        raise MetricError(f"the pattern {pattern!r} takes too long on {shown(text)}") from None


def _given_up(pattern: str, where: Place) -> str:
    place = f"{where.file}:{where.line}" if where.file and where.line else where.file
    message = (
        f"the pattern {pattern!r} took more than {LIMIT_S:g} s on {MOST_TIMEOUTS} answers and is not tried again; "
        f"remove repetitions inside of repetitions, such as (a+)+"
    )
    return f"{place}: {message}" if place else message


@lru_cache
def _standard(pattern: str) -> str:
    """Return the pattern with the braces escaped that the standard library reads as characters."""
    return _BRACE.sub(lambda match: r"\{" if match.group(1) else match.group(), pattern)
