"""Reads values of other tools: invalid numbers become ``None``, other values become text."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict

from agenteval.results.case import Score
from agenteval.results.values import Text
from agenteval.suite.model import MetricKind

# A score of 1.0000000000000004 counts as 1.
_ROUNDING = 1e-6
# Larger counts of milliseconds, tokens or dollars are invalid.
_LARGEST_AMOUNT = 1e15
_SCALE = re.compile(r"\s*(?P<low>\d+(?:\.\d+)?)\s*(?:-|–|\.\.|to)\s*(?P<high>\d+(?:\.\d+)?)\s*")


def finite(value: Any) -> float | None:
    """Return a number; ``None`` for everything else, including NaN and infinity."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _amount(value: Any) -> float | None:
    number = finite(value)
    return number if number is not None and 0 <= number <= _LARGEST_AMOUNT else None


def _count(value: Any) -> int | None:
    number = _amount(value)
    return int(number) if number is not None and number == int(number) else None


def text_of(value: Any) -> str:
    """Return a value as text: texts unchanged, ``None`` as an empty text, other values as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _optional_text(value: Any) -> str | None:
    return None if value is None else text_of(value)


_T = TypeVar("_T")

Number = Annotated[float | None, BeforeValidator(finite)]
Amount = Annotated[float | None, BeforeValidator(_amount)]
Count = Annotated[int | None, BeforeValidator(_count)]
AnyText = Annotated[Text, BeforeValidator(text_of)]
OptionalText = Annotated[Text | None, BeforeValidator(_optional_text)]
Listed = Annotated[tuple[_T, ...], BeforeValidator(lambda value: () if value is None else value)]
Mapped = Annotated[dict[Text, _T], BeforeValidator(lambda value: {} if value is None else value)]


class Shape(BaseModel):
    """Part of an imported file; unknown keys are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


def loads(text: str) -> Any:
    """Parse JSON; NaN, infinity and numbers like ``1e999`` become ``None``.

    Raises:
        ValueError: the text is not JSON, or contains a number of thousands of digits.
        RecursionError: the JSON is nested too deeply.
    """
    return json.loads(text, parse_constant=lambda _: None, parse_float=lambda digits: finite(float(digits)))


@dataclass(frozen=True, slots=True)
class Grade:
    """A score on the scale of its metric.

    Attributes:
        highest: the best score of the scale, above 0.
        absent: why the score of the file is not used.
        error: the error that prevented the score.
    """

    id: str
    kind: MetricKind
    value: float | None
    highest: float = 1.0
    threshold: float | None = None
    passed: bool | None = None
    reason: str | None = None
    absent: str | None = None
    error: str | None = None
    model: str | None = None
    duration_ms: float | None = None

    @property
    def score(self) -> Score:
        """The score from 0 to 1. A score outside its scale is an error."""
        common: dict[str, Any] = {
            "id": self.id,
            "kind": self.kind,
            "model": self.model,
            "duration_ms": self.duration_ms,
        }
        if self.absent is not None:
            return Score(score=None, passed=None, status="skipped", reason=self.absent, **common)
        if self.error is not None or self.value is None:
            why = self.error or "the file has no number as its score"
            return Score(score=None, passed=None, status="error", error=why, **common)
        value = self.value / self.highest
        if not -_ROUNDING <= value <= 1 + _ROUNDING:
            why = f"the file's score of {self.value:g} is not between 0 and {self.highest:g}"
            return Score(score=None, passed=None, status="error", error=why, **common)
        return Score(
            score=min(max(value, 0.0), 1.0),
            threshold=None if self.threshold is None else finite(self.threshold / self.highest),
            passed=self.passed,
            status="scored",
            reason=self.reason,
            **common,
        )


def highest_of(scale: str | None) -> float:
    """Return the upper end of a scale like ``0-10``; 1 without an end."""
    found = _SCALE.fullmatch(scale or "")
    return (float(found["high"]) if found else 0.0) or 1.0
