"""Reads the tool call checks of a trace, as shares from 0 to 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.results.case import ToolCall
from agenteval.results.record.fields import (
    FAILED,
    as_number,
    is_finite,
    is_true,
    observations_of,
    reported_error,
    value_at,
)

# The keys of these figures in traces.
_PLACES = ("tool_calling", "tool_calling_metrics", "tool_metrics", "tool_usage")
_CHECKS = (
    "all_calls_successful",
    "appropriate_selection",
    "correct_parameters",
    "proper_timing",
    "handles_failures",
)


def tool_checks(trace: Mapping[str, Any], calls: Sequence[ToolCall]) -> dict[str, tuple[float, ...]]:
    """Return check → shares of tool calls that meet it.

    A trace may contain the shares, in one mapping or in a list of mappings. Without them, the success of all calls is
    computed from the calls, else from the observations of tools in its timeline.

    Args:
        trace: the record.
        calls: the calls that were recorded with the answer.
    """
    found: dict[str, list[float]] = {}
    for entry in _entries(trace):
        for check in _CHECKS:
            found.setdefault(check, []).extend(_shares(entry.get(check)))
    succeeded = [call.error is None for call in calls] or list(_in_timeline(trace))
    if succeeded and not found.get("all_calls_successful"):
        found["all_calls_successful"] = [sum(succeeded) / len(succeeded)]
    return {check: tuple(shares) for check, shares in found.items() if shares}


def _entries(trace: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the entries of the first key that has any."""
    value = next((found for place in _PLACES if (found := value_at(trace, place)) is not None), None)
    entries = value if isinstance(value, list) else [value]
    return [entry for entry in entries if isinstance(entry, Mapping)]


def _in_timeline(trace: Mapping[str, Any]) -> Iterator[bool]:
    """Yield for each observation of a tool whether it tells of no error."""
    for item in observations_of(trace):
        if isinstance(item, Mapping) and "tool" in str(item.get("type")).lower():
            # FluxLoop stores fields that it does not define below ``raw``.
            parts = [part for part in (item, item.get("raw")) if isinstance(part, Mapping)]
            yield not any(map(_tells_of_error, parts)) and not _is_error(item.get("output"))


def _is_error(output: Any) -> bool:
    """Return whether a result is an error, as MCP and Anthropic mark it; other fields are the tool's own."""
    return isinstance(output, Mapping) and any(is_true(output.get(name)) for name in ("isError", "is_error"))


def _tells_of_error(part: Mapping[str, Any]) -> bool:
    success = part.get("success")
    return (
        reported_error(part) is not None
        or _is_error(part)
        or any(str(part.get(name)).lower() in FAILED for name in ("level", "status"))
        or (success is not None and not is_true(success))
    )


def _shares(value: Any) -> Iterator[float]:
    """Return shares from a boolean, a number, a text such as "false", or a list of these; ``None`` is ignored.

    A number that is not finite, an object, and a text that neither agrees nor is a number are not met.
    """
    if isinstance(value, list):
        for item in value:
            yield from _shares(item)
    elif value is not None:
        number = as_number(value) if isinstance(value, str) else value
        if isinstance(number, int | float) and not isinstance(number, bool):
            yield float(min(1, max(0, number))) if is_finite(number) else 0.0
        else:
            yield float(is_true(value))
