"""Comparisons of an answer with a text, a number or a pattern."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from threading import Lock
from typing import Any, ClassVar

from agenteval.core.records import dataclass, field
from agenteval.core.text import composed, parse_number
from agenteval.metrics.base import MetricError, Observation, Outcome, shown
from agenteval.suite.forms import TextMatch
from agenteval.suite.model import Place

# Regular expressions with a time limit, because some patterns need exponential time on some texts.
#
# Every search for a pattern of a suite goes through this module. :class:`PatternTimeouts` counts for a run which
# patterns took too long, and ends their use.


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
    """Match like ``re.fullmatch``."""
    import regex

    return _holds(regex.fullmatch, pattern, text)


def found(pattern: str, text: str) -> bool:
    """Match like ``re.search``."""
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


GROUND_TRUTH = frozenset({"ground_truth"})

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True)
class Equality:
    """1 if response and ground truth are equal after the selected normalisations, else 0."""

    case_insensitive: bool = False
    strip_whitespace: bool = False
    strip_punctuation: bool = False
    requires: ClassVar[frozenset[str]] = GROUND_TRUTH

    def measure(self, observation: Observation) -> Outcome:
        """Compare the texts; the metric decides the verdict."""
        expected = self._normalise(observation.ground_truth or "")
        actual = self._normalise(observation.response)
        if expected == actual:
            return Outcome(1.0, passed=True)
        return Outcome(0.0, passed=False, reason=f"expected {shown(expected)}, got {shown(actual)}")

    def _normalise(self, text: str) -> str:
        # Case first, then punctuation, then white space: HoloDeck's order.
        if self.case_insensitive:
            text = text.casefold()
        if self.strip_punctuation:
            text = text.translate(_NO_PUNCTUATION)
        if self.strip_whitespace:
            text = " ".join(text.split())
        return text


@dataclass(frozen=True)
class Numeric:
    """1 if two numbers agree within an absolute or a relative tolerance, else 0.

    Args:
        absolute_tolerance: largest allowed ``|actual - expected|``, inclusive.
        relative_tolerance: largest allowed difference as a share of ``|expected|``; 0 disables it.
        accept_percent: a trailing ``%`` divides by 100.
        accept_thousands_separators: ``,``, ``_`` and no-break spaces are removed anywhere in the number.
    """

    absolute_tolerance: float = 1e-6
    relative_tolerance: float = 0.0
    accept_percent: bool = False
    accept_thousands_separators: bool = False
    requires: ClassVar[frozenset[str]] = GROUND_TRUTH

    def measure(self, observation: Observation) -> Outcome:
        """Compare the numbers; a text that is not a number scores 0 with the reason."""
        try:
            actual = self.parse(observation.response)
        except ValueError as error:
            return Outcome(0.0, passed=False, reason=f"the response {error}")
        try:
            expected = self.parse(observation.ground_truth or "")
        except ValueError as error:
            return Outcome(0.0, passed=False, reason=f"the ground truth {error}")
        if self._close(actual, expected):
            return Outcome(1.0, passed=True)
        return Outcome(
            0.0,
            passed=False,
            reason=f"expected {expected!r}, got {actual!r}: a difference of {abs(actual - expected):.6g}",
        )

    def _close(self, actual: float, expected: float) -> bool:
        difference = abs(actual - expected)
        if difference <= self.absolute_tolerance:
            return True
        return self.relative_tolerance > 0 and difference <= self.relative_tolerance * abs(expected)

    def parse(self, text: str) -> float:
        """Return the number in a text.

        Raises:
            ValueError: the text is not a number; the message continues "the response …".
        """
        options = {name: getattr(self, name) for name in ("accept_percent", "accept_thousands_separators")}
        try:
            return parse_number(text, **options)
        except ValueError as error:
            raise ValueError(f"{shown(text)} {error}" if text.strip() else str(error)) from None


# Strategies that match any of several texts, with their words in messages.
_ANY: dict[str, tuple[Callable[[str, str], bool], str]] = {
    "contains_any": (lambda text, part: part in text, "contains none of"),
    "startswith": (str.startswith, "does not start with"),
    "endswith": (str.endswith, "does not end with"),
}


@dataclass(frozen=True)
class TextMatchMetric:
    """1 if the answer matches, else 0; without a verdict if every text matches."""

    match: TextMatch
    requires: ClassVar[frozenset[str]] = frozenset()

    @property
    def has_patterns(self) -> bool:
        """Whether the metric searches for a pattern of the suite, which may take long."""
        return self.match.strategy == "match"

    def measure(self, observation: Observation) -> Outcome:
        """Compare the texts; the metric decides the verdict, unless every text matches."""
        if self.match.matches_everything:
            return Outcome(1.0, reason="every text matches, so nothing is checked")
        problem = mismatch(self.match, observation.response)
        return Outcome(1.0 if problem is None else 0.0, passed=problem is None, reason=problem)


def mismatch(match: TextMatch, text: str) -> str | None:
    """Return why a text does not match; ``None`` if it matches.

    All strategies but ``match`` ignore case and surrounding white space, unless the match is case-sensitive.
    ``similar`` is not handled here.
    """
    if match.strategy == "match":
        pattern = match.expected[0]
        return None if found(pattern, text) else f"the pattern {pattern!r} is not found in {shown(text)}"
    actual = _normal(text, match)
    expected = [_normal(item, match) for item in match.expected]
    if match.strategy == "exact":
        return None if actual == expected[0] else f"expected {shown(match.expected[0])}, got {shown(text)}"
    if match.strategy == "contains":
        missing = [item for item, part in zip(match.expected, expected, strict=True) if part not in actual]
        return f"{_listed(missing)} is missing in {shown(text)}" if missing else None
    holds, words = _ANY[match.strategy]
    if any(holds(actual, part) for part in expected):
        return None
    return f"{shown(text)} {words} {_listed(match.expected)}"


def _normal(text: str, match: TextMatch) -> str:
    text = composed(text)
    return text if match.case_sensitive else text.strip().casefold()


def _listed(texts: tuple[str, ...] | list[str]) -> str:
    return ", ".join(map(shown, texts))
