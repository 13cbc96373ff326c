"""``expected_tools``: which tools a turn must call, how often, and with which arguments."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import regex

from agenteval.metrics.base import MetricError, Observation, Outcome
from agenteval.results.model import ToolCall

_SEPARATORS = str.maketrans("", "", ",_\u202f")
_REGEX_LIMIT_S = 1.0
_WHITE_SPACE = re.compile(r"\s+")
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class ExpectedTools:
    """1 if every expected tool was called, else 0 with what was called and what missed.

    Args:
        expected: mappings with ``name`` (a case-sensitive part of the tool's name), ``count`` (at
            least so many matching calls) and ``args`` (all must hold on one call; a literal,
            ``{"fuzzy": text}`` or ``{"regex": pattern}``; ``None`` checks the name only).
    """

    expected: Sequence[Mapping[str, Any]] = ()
    requires: ClassVar[frozenset[str]] = frozenset()

    def measure(self, observation: Observation) -> Outcome:
        """Compare; order and further calls do not matter, one call may satisfy several entries."""
        missing = [text for entry in self.expected if (text := _missing(entry, observation.tool_calls)) is not None]
        if not missing:
            return Outcome(1.0, passed=True)
        called = ", ".join(call.name for call in observation.tool_calls) or "no tool"
        return Outcome(0.0, passed=False, reason=f"{'; '.join(missing)}; called: {called}")


def _missing(entry: Mapping[str, Any], calls: Sequence[ToolCall]) -> str | None:
    """What an expected tool lacks, or ``None`` if it was called as wanted."""
    name, count, args = entry["name"], entry.get("count", 1), entry.get("args")
    named = [call for call in calls if name in call.name]
    mismatches = [_mismatch(args or {}, call) for call in named]
    matching = mismatches.count(None)
    if matching >= count:
        return None
    if not named:
        return f"{name} was not called"
    reasons = [reason for reason in mismatches if reason is not None]
    if reasons:
        return f"{name} was not called as expected: {reasons[0]}"
    return f"{name} was called {'once' if matching == 1 else f'{matching} times'}, expected at least {count}"


def _mismatch(expected: Mapping[str, Any], call: ToolCall) -> str | None:
    args = call.args if isinstance(call.args, dict) else {}
    for key, matcher in expected.items():
        if key not in args:
            return f"argument {key} is missing"
        if not matches(matcher, args[key]):
            return f"argument {key} is {_shown(args[key])}, expected {_shown(matcher)}"
    return None


def matches(matcher: Any, actual: Any) -> bool:
    """Whether an argument is what a matcher asks for."""
    if isinstance(matcher, dict) and len(matcher) == 1:
        ((kind, pattern),) = matcher.items()
        if kind == "fuzzy":
            return fuzzy_equal(str(pattern), actual)
        if kind == "regex":
            return _full_match(str(pattern), str(actual))
    return literal_equal(matcher, actual)


def _full_match(pattern: str, text: str) -> bool:
    """``re.fullmatch`` with a time limit: the agent chooses the text, and some pairs take for ever."""
    try:
        return regex.fullmatch(pattern, text, timeout=_REGEX_LIMIT_S) is not None
    except TimeoutError:
        raise MetricError(f"the pattern {pattern!r} takes too long on {_shown(text)}") from None


def literal_equal(expected: Any, actual: Any) -> bool:
    """Equality where 1 is 1.0, but a boolean equals only a boolean.

    A whole number and a float are compared as floats, so that 2**53 + 1 is 9007199254740992.0.
    """
    if isinstance(expected, bool) or isinstance(actual, bool):
        return isinstance(expected, bool) and isinstance(actual, bool) and expected == actual
    if isinstance(expected, int | float) and isinstance(actual, int | float):
        return _same_number(expected, actual)
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(literal_equal, expected, actual))
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(
            literal_equal(value, actual[key]) for key, value in expected.items()
        )
    return type(expected) is type(actual) and bool(expected == actual)


def _same_number(expected: float, actual: float) -> bool:
    if type(expected) is type(actual):
        return expected == actual
    try:
        return float(expected) == float(actual)
    except OverflowError:
        return False


def fuzzy_equal(expected: str, actual: Any) -> bool:
    """Equality that ignores case, white space runs and thousands separators; numbers by value."""
    left, right = _fuzzy_text(expected), _fuzzy_text(str(actual))
    if left == right:
        return True
    numbers = _fuzzy_number(left), _fuzzy_number(right)
    if numbers[0] is None or numbers[1] is None:
        return False
    return math.isclose(numbers[0], numbers[1], rel_tol=0.0, abs_tol=1e-9)


def _fuzzy_text(text: str) -> str:
    return _WHITE_SPACE.sub(" ", text.strip().lower().translate(_SEPARATORS))


def _fuzzy_number(text: str) -> float | None:
    percent = text.endswith("%")
    try:
        number = float(text.removesuffix("%").replace(" ", ""))
    except ValueError:
        return None
    return number / 100 if percent else number


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
