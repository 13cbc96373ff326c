"""Matches an answer with a text or a pattern."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from agenteval.metrics.base import Observation, Outcome
from agenteval.metrics.text.patterns import found
from agenteval.metrics.values import shown
from agenteval.suite.output_schema import TextMatch

# Strategies that match any of several texts, with their words in messages.
_ANY: dict[str, tuple[Callable[[str, str], bool], str]] = {
    "contains_any": (lambda text, part: part in text, "contains none of"),
    "startswith": (str.startswith, "does not start with"),
    "endswith": (str.endswith, "does not end with"),
}


@dataclass(frozen=True, slots=True)
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

    Raises:
        MetricError: the pattern takes too long.
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
    return text if match.case_sensitive else text.strip().casefold()


def _listed(texts: tuple[str, ...] | list[str]) -> str:
    return ", ".join(map(shown, texts))
