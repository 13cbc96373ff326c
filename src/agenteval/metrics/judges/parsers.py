"""Reads the score in a judge's reply; rejects scores outside the judge's scale."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agenteval.core.masking import beginning
from agenteval.metrics.base import MetricError
from agenteval.metrics.judges.reply import json_object
from agenteval.metrics.values import shown

_HIGHEST = 10.0
_ROUNDING = 1e-9
_LONGEST_REASON = 500
_REASONS = ("reason", "reasoning", "explanation", "rationale", "justification", "feedback", "comment")
# A separate number: not part of a word (GPT-4), a longer number or a version (1.2.3).
_NUMBER = re.compile(
    r"(?<![\w.])(?<!\w-)"
    r"(?P<sign>[-−+]?)"
    r"(?P<value>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
    r"(?!\.\d|\w|-[A-Za-z])"
)
_AFTER_PERCENT = re.compile(r"\s*(?:%|percent\b)")
_AFTER_HIGHEST = re.compile(r"\s*(?:/|out\s+of)\s*(?P<highest>\d+(?:\.\d+)?)", re.IGNORECASE)
# "1-10", "1 to 10", "between 1 and 10", "out of 10", "/10": the scale, not a score.
_SCALE = re.compile(
    r"(?:(?<![\w.])[01](?:\.0+)?\s*(?:-|–|—|\.\.\.?|…|\bto\b|\bthrough\b)|\bbetween\s+[01](?:\.0+)?\s+and\b|/|\bout\s+of\b)"
    r"\s*(?P<high>\d+(?:\.\d+)?)(?![\w%]|\.\d)",
    re.IGNORECASE,
)
_LIST_MARK = re.compile(r"^[^\S\n]*(?P<number>\d+)[.)]\s+", re.MULTILINE)
_REASON = re.compile(r"\breason(?:ing)?\b[^\w\n]*?[:\-–—][^\w\n\"'(\[]*(?P<reason>\S.*)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A score on the judge's scale, and its reason."""

    raw: float
    reason: str


Parser = Callable[[str, float], Judgement]


def first_number_1_10(text: str, max_score: float) -> Judgement:
    """Return the first number, which must be 0 to 10 and at most ``max_score``.

    Mentions of the scale (``1-10``, ``out of 10``), numbers of a list, and numbers inside words are not scores.
    A score on another scale (``4/5``, ``80%``) is rejected.

    Raises:
        MetricError: there is no number, or it is on another scale.
    """
    return _first(text, min(_HIGHEST, max_score), {_HIGHEST, max_score})


def first_float(text: str, max_score: float) -> Judgement:
    """Return the first number from 0 to ``max_score``, decimals allowed; otherwise like ``first_number_1_10``.

    Raises:
        MetricError: there is no number, or it is on another scale.
    """
    return _first(text, max_score, {max_score})


def json_score(text: str, max_score: float) -> Judgement:
    """Return ``score`` of the JSON object in the reply, from 0 to ``max_score``.

    Raises:
        MetricError: there is no such object, or its score is not a number on the scale.
    """
    reply = json_object(text)
    reason = next((reply[name] for name in _REASONS if isinstance(reply.get(name), str)), "")
    return Judgement(_checked(_json_number(reply.get("score"), text), max_score), _short(reason or text))


PARSERS: Mapping[str, Parser] = {
    "first_number_1_10": first_number_1_10,
    "json_score": json_score,
    "first_float": first_float,
}


def _first(text: str, highest: float, scales: set[float]) -> Judgement:
    readable = _without_scales(_without_list_marks(text), scales)
    number = next(_numbers(readable, scales), None)
    if number is None:
        raise MetricError(f"the judge's reply has no score: {shown(text)}")
    return Judgement(_checked(number, highest), _reason(text))


def _numbers(text: str, scales: set[float]) -> Iterator[float]:
    for match in _NUMBER.finditer(text):
        value = float(match["value"].replace(",", ""))
        if _AFTER_PERCENT.match(text, match.end()):
            raise MetricError(f"the judge's score is a percentage: {shown(text.strip())}")
        of = _AFTER_HIGHEST.match(text, match.end())
        if of and float(of["highest"]) not in scales:
            raise MetricError(f"the judge's score is on another scale: {shown(text[match.start() : of.end()])}")
        yield -value if match["sign"] in {"-", "−"} else value


def _without_scales(text: str, scales: set[float]) -> str:
    return _SCALE.sub(lambda match: " " if float(match["high"]) in scales else match.group(), text)


def _without_list_marks(text: str) -> str:
    """Remove the numbers of a list that starts at 1; a single ``8.`` may be the score."""
    marks = [float(match["number"]) for match in _LIST_MARK.finditer(text)]
    return _LIST_MARK.sub("", text) if marks[:2] == [1, 2] else text


def _json_number(value: Any, text: str) -> float:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            value = None
    if value is None or isinstance(value, bool) or not isinstance(value, int | float):
        raise MetricError(f"the judge gave no number as score: {shown(text)}")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _checked(score: float, highest: float) -> float:
    if not -_ROUNDING <= score <= highest + _ROUNDING:
        raise MetricError(f"the judge's score is {score:g}, outside its scale of 0 to {highest:g}")
    return min(max(score, 0.0), highest)


def _reason(text: str) -> str:
    found = _REASON.search(text)
    return _short(found["reason"] if found else text)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_REASON else f"{beginning(line, _LONGEST_REASON - 1)}…"
