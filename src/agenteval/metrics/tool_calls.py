"""Checks expected tool calls, with arguments by name or in order."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from agenteval.core.records import dataclass
from agenteval.metrics.base import Observation, Outcome, literal_equal, shown
from agenteval.metrics.text import full_match
from agenteval.results.case import ToolCall


@dataclass(frozen=True)
class ToolCalls:
    """1 if every expected call was made, else 0.

    Each expected call needs a separate call; the order and additional calls are ignored.

    Args:
        expected: mappings with ``name`` and ``args``: a mapping of arguments that the call must contain, or a
            list of all its arguments in order.
    """

    expected: Sequence[Mapping[str, Any]]
    requires: ClassVar[frozenset[str]] = frozenset()

    def measure(self, observation: Observation) -> Outcome:
        """Compare the calls; the metric decides the verdict."""
        calls = observation.tool_calls
        missing = _unmatched(self.expected, calls)
        if not missing:
            return Outcome(1.0, passed=True)
        reasons = "; ".join(_why(entry, calls) for entry in missing)
        called = ", ".join(call.name for call in calls) or "no tool"
        return Outcome(0.0, passed=False, reason=f"{reasons}; called: {called}")


def _unmatched(expected: Sequence[Mapping[str, Any]], calls: Sequence[ToolCall]) -> list[Mapping[str, Any]]:
    """Return the expected calls without a match in the best assignment of calls (augmenting paths, breadth first)."""
    taken: dict[int, int] = {}
    found: dict[int, int] = {}

    def assign(entry: int) -> bool:
        """Assign a call to an entry; entries with a call may get a different one."""
        wanted_by: dict[int, int] = {}
        waiting = [entry]
        for current in waiting:
            for index, call in enumerate(calls):
                if index in wanted_by or _mismatch(expected[current], call) is not None:
                    continue
                wanted_by[index] = current
                if index not in taken:
                    hand_over(index, wanted_by)
                    return True
                waiting.append(taken[index])
        return False

    def hand_over(free: int, wanted_by: Mapping[int, int]) -> None:
        index: int | None = free
        while index is not None:
            entry = wanted_by[index]
            taken[index] = entry
            found[entry], index = index, found.get(entry)

    return [entry for number, entry in enumerate(expected) if not assign(number)]


def _why(entry: Mapping[str, Any], calls: Sequence[ToolCall]) -> str:
    name = entry["name"]
    named = [call for call in calls if call.name == name]
    if not named:
        return f"{name} was not called"
    reason = next((reason for call in named if (reason := _mismatch(entry, call)) is not None), None)
    if reason is None:
        times = "once" if len(named) == 1 else f"{len(named)} times"
        return f"{name} was called {times} with these arguments, expected once more"
    return f"{name} was not called as expected: {reason}"


def _mismatch(entry: Mapping[str, Any], call: ToolCall) -> str | None:
    if call.name != entry["name"]:
        return f"it is {call.name}"
    expected = entry["args"]
    if isinstance(expected, Mapping):
        given = call.args if isinstance(call.args, dict) else {}
        for name, value in expected.items():
            if name not in given:
                return f"argument {name} is missing"
            if not literal_equal(value, given[name]):
                return f"argument {name} is {shown(given[name])}, expected {shown(value)}"
        return None
    given_in_order = _in_order(call.args)
    if literal_equal(list(expected), given_in_order):
        return None
    return f"its arguments are {shown(given_in_order)}, expected {shown(list(expected))}"


def _in_order(args: Any) -> list[Any]:
    if isinstance(args, dict):
        return list(args.values())
    if args is None:
        return []
    return args if isinstance(args, list) else [args]


_SEPARATORS = str.maketrans("", "", ",_\u202f")

_WHITE_SPACE = re.compile(r"\s+")


@dataclass(frozen=True)
class ExpectedTools:
    """1 if every expected tool was called, else 0 with the missing calls as the reason.

    Args:
        expected: mappings with ``name`` (a case-sensitive part of the tool's name), ``count`` (minimum number of
            matching calls) and ``args`` (all must match one call: a literal, ``{"fuzzy": text}`` or
            ``{"regex": pattern}``; ``None`` checks the name only).
    """

    expected: Sequence[Mapping[str, Any]] = ()
    requires: ClassVar[frozenset[str]] = frozenset()

    @property
    def has_patterns(self) -> bool:
        """Whether the metric searches for a pattern of the suite, which may take long."""
        matchers = (item for entry in self.expected for item in (entry.get("args") or {}).values())
        return any(isinstance(item, dict) and "regex" in item for item in matchers)

    def measure(self, observation: Observation) -> Outcome:
        """Compare the calls; order and additional calls are ignored, and one call may satisfy several entries."""
        missing = [text for entry in self.expected if (text := _missing(entry, observation.tool_calls)) is not None]
        if not missing:
            return Outcome(1.0, passed=True)
        called = ", ".join(call.name for call in observation.tool_calls) or "no tool"
        return Outcome(0.0, passed=False, reason=f"{'; '.join(missing)}; called: {called}")


def _missing(entry: Mapping[str, Any], calls: Sequence[ToolCall]) -> str | None:
    name, count, args = entry["name"], entry.get("count", 1), entry.get("args")
    named = [call for call in calls if name in call.name]
    mismatches = [_argument_mismatch(args or {}, call) for call in named]
    matching = mismatches.count(None)
    if matching >= count:
        return None
    if not named:
        return f"{name} was not called"
    reasons = [reason for reason in mismatches if reason is not None]
    if reasons:
        return f"{name} was not called as expected: {reasons[0]}"
    return f"{name} was called {'once' if matching == 1 else f'{matching} times'}, expected at least {count}"


def _argument_mismatch(expected: Mapping[str, Any], call: ToolCall) -> str | None:
    args = call.args if isinstance(call.args, dict) else {}
    for key, matcher in expected.items():
        if key not in args:
            return f"argument {key} is missing"
        if not matches(matcher, args[key]):
            return f"argument {key} is {shown(args[key])}, expected {shown(matcher)}"
    return None


def matches(matcher: Any, actual: Any) -> bool:
    """Return whether an argument satisfies a matcher."""
    if isinstance(matcher, dict) and len(matcher) == 1:
        ((kind, pattern),) = matcher.items()
        if kind == "fuzzy":
            return fuzzy_equal(str(pattern), actual)
        if kind == "regex":
            return full_match(str(pattern), str(actual))
    return literal_equal(matcher, actual)


def fuzzy_equal(expected: str, actual: Any) -> bool:
    """Return whether two texts are equal, ignoring case, white space and thousands separators; numbers by value."""
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
