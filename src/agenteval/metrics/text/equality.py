"""The metrics ``equality`` and ``numeric``."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import ClassVar

from agenteval.core.text.number import parse_number
from agenteval.metrics.base import Observation, Outcome
from agenteval.metrics.values import shown

GROUND_TRUTH = frozenset({"ground_truth"})

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
