"""The flat record of an answer, which rules and analyses read."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from agenteval.results.case import ToolCall, Usage

Record = Mapping[str, Any]

#: What a status or a level says of an error.
FAILED = frozenset({"error", "critical", "fatal", "fail", "failed", "failure"})
_NOTHING = frozenset({"", "none", "null"})
_YES = frozenset(
    {"true", "yes", "y", "on", "ok", "success", "successful", "succeeded", "pass", "passed", "completed", "done"}
)


def trace_of_reply(
    *,
    input: str,  # noqa: A002 - the field is called so
    output: str,
    duration_ms: float | None = None,
    success: bool = True,
    persona: str | None = None,
    iteration: int = 0,
    trace_id: str = "",
    metadata: Record | None = None,
    expected: Record | None = None,
    usage: Usage | None = None,
    tool_calls: Sequence[ToolCall] = (),
) -> dict[str, Any]:
    """Return the record of a live answer.

    Args:
        input: the question.
        output: the answer.
        duration_ms: latency in ms.
        success: whether there is an answer.
        persona: the persona that asked.
        iteration: index of the iteration, from 0.
        trace_id: id of the answer, the same in every run, because sampling and caches depend on it.
        metadata: metadata in the agent's reply.
        expected: the suite's metadata of the input; it overrides the agent's metadata.
        usage: tokens of the answer.
        tool_calls: tool calls, which become the timeline.
    """
    record: dict[str, Any] = {
        "trace_id": trace_id,
        "iteration": iteration,
        "persona": persona,
        "input": input,
        "output": output,
        "duration_ms": duration_ms,
        "success": success,
        "metadata": {**(metadata or {}), **(expected or {})},
        "timeline": [_observation(call) for call in tool_calls],
    }
    tokens = _token_usage(usage)
    return {**record, "token_usage": tokens} if tokens else record


def value_at(record: Record, path: str) -> Any:
    """Return the value of a field; ``None`` if it does not exist.

    The search order is: a key with the name of the whole path, the path through nested objects (also inside JSON
    texts), and both again in ``summary.raw``, where FluxLoop stores keys it does not define.
    """
    found = record[path] if path in record else _nested(record, path.split("."))
    if found is not None or "summary" not in record:
        return found
    unknown = _nested(record, ("summary", "raw"))
    if not isinstance(unknown, dict):
        return None
    return unknown[path] if path in unknown else _nested(unknown, path.split("."))


def observations_of(record: Record) -> list[Any]:
    """Return the observations of a trace: calls of models and tools, in order."""
    found = record.get("timeline") or record.get("observations")
    return found if isinstance(found, list) else []


def is_true(value: Any) -> bool:
    """Return whether a value of a trace means yes.

    ``true``, finite numbers other than 0, and texts that agree mean yes. Other texts, objects and lists mean no: what
    they contain could deny.
    """
    if isinstance(value, str):
        number = as_number(value)
        return value.strip().lower() in _YES if number is None else is_true(number)
    return isinstance(value, int | float) and bool(value) and is_finite(value)


def as_number(text: str) -> float | None:
    """Return a text as a number; ``None`` if it is not one."""
    with contextlib.suppress(ValueError):
        return float(text)
    return None


def is_finite(number: float) -> bool:
    """Return whether a number is finite; integers may exceed the range of floats."""
    return isinstance(number, int) or math.isfinite(number)


def reported_success(record: Record) -> bool | None:
    """Return the success that a trace reports, by ``success`` or else by ``status``; ``None`` if it reports none.

    A status that tells of a failure contradicts a success, and counts.
    """
    said, status = value_at(record, "success"), value_at(record, "status")
    if said is None and isinstance(status, bool):
        return status
    word = status.strip().lower().removeprefix("status_code_") if isinstance(status, str) else None
    if said is not None:
        return is_true(said) and word not in FAILED
    return None if word is None or word == "unset" else word in _YES


def reported_error(record: Record) -> Any:
    """Return the error that a trace contains; ``None`` without one, also if it is only called none."""
    error = value_at(record, "error")
    if isinstance(error, str):
        return None if error.strip().lower() in _NOTHING else error
    if isinstance(error, Mapping):
        return error if any(error.values()) else None
    return error or None


def was_successful(record: Record) -> bool | None:
    """Return whether an answer succeeded. An answer with an error did not, even if its trace reports success."""
    return False if reported_error(record) is not None else reported_success(record)


def _nested(record: Record, path: Sequence[str]) -> Any:
    value: Any = record if isinstance(record, dict) else dict(record)
    for step in path:
        if isinstance(value, str):
            value = _object(value)
        if not isinstance(value, dict) or step not in value:
            return None
        value = value[step]
    return value


def _object(text: str) -> Any:
    if not text.lstrip().startswith("{"):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _observation(call: ToolCall) -> dict[str, Any]:
    return {
        "type": "tool",
        "name": call.name,
        "input": call.args,
        "output": call.result,
        "error": call.error,
        "duration_ms": call.duration_ms,
    }


def _token_usage(usage: Usage | None) -> dict[str, int]:
    if usage is None:
        return {}
    parts = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
    known = {name: count for name, count in parts.items() if count is not None}
    return {**known, "total_tokens": sum(known.values())} if len(known) == len(parts) else known
