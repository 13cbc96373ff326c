"""Finds the tool calls in the results of agents of any framework.

This file runs in the worker process under the user's Python (3.8 or newer) and needs only the
standard library.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agenteval.agents.worker.fields import SPEAKERS, as_list, first, get, has, kind_of, plain

_NAMES = ("tool_name", "name", "tool")
_ARGUMENTS = ("args", "arguments", "tool_args", "tool_kwargs", "tool_input")
_ENDS = ("result", "error")
_IDS = ("tool_call_id", "call_id", "tool_id", "id")


def tool_calls_of(result: Any, events: Sequence[Any], messages: Sequence[Any]) -> list[dict[str, Any]]:
    """Return every call with its result, in order, from the first source that contains any."""
    for source in (events, list(_records(result)), messages):
        calls = _paired(signal for item in source for signal in _signals(item))
        if calls:
            # In Pydantic AI the model calls a tool to return structured output.
            output_tool = getattr(result, "_output_tool_name", None)
            return [call for call in calls if call["name"] != output_tool]
    return []


def _paired(signals: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Pair calls with their results by id, or by name without an id."""
    calls: list[dict[str, Any]] = []
    for signal in signals:
        pending = next((call for call in calls if _belongs(signal, call)), None)
        if pending is not None:
            pending.update({key: signal[key] for key in _ENDS if key in signal})
        elif "args" in signal:
            calls.append(signal)
    return [{key: value for key, value in call.items() if key != "id"} for call in calls]


def _belongs(signal: Mapping[str, Any], call: Mapping[str, Any]) -> bool:
    """Return whether a signal is the result of a call that has no result yet."""
    if any(key in call for key in _ENDS) or not any(key in signal for key in _ENDS):
        return False
    if signal["id"] is not None or call["id"] is not None:
        return bool(signal["id"] == call["id"])
    return "args" not in signal and signal["name"] == call["name"]


def _records(result: Any) -> Iterator[Any]:
    """Yield the records of tool calls that results contain besides messages."""
    yield from as_list(result, "new_items")
    yield from (tool for tool in as_list(result, "tools") if has(tool, "tool_name"))
    for call in as_list(result, "tool_calls"):
        function = get(call, "function") or call
        named = {"tool_name": first(function, _NAMES), "tool_call_id": first(call, _IDS)}
        yield {**named, "args": first(function, _ARGUMENTS), **_ended(call)}
    for source in as_list(result, "sources"):
        if has(source, "tool_name"):
            given = get(source, "raw_input") or {}
            yield {"tool_name": source.tool_name, "args": given.get("kwargs", given), "tool_output": source}
    for step in as_list(result, "intermediate_steps"):
        if isinstance(step, (list, tuple)) and len(step) == 2:
            yield {"tool_name": get(step[0], "tool"), "args": get(step[0], "tool_input"), "result": step[1]}


def _signals(item: Any) -> Iterator[dict[str, Any]]:
    """Yield the calls and results in a message, a part of a message, an event, or a record of a call."""
    parts = as_list(item, "parts") or as_list(get(item, "content"), "parts")
    if parts:
        for part in parts:
            yield from _signals(part)
        return
    kind = str(get(item, "part_kind") or kind_of(item) or "")
    if has(item, "function_call"):
        yield _call(get(item, "function_call"))
    elif has(item, "function_response"):
        response = get(item, "function_response")
        yield {**_named(response), "result": plain(get(response, "response"))}
    elif has(item, "raw_item"):
        yield from _run_item(item, get(item, "raw_item"), kind)
    elif kind in {"tool", "retry-prompt"} or kind.endswith("tool-return"):
        yield _returned(item, kind)
    elif kind in SPEAKERS:
        for call in as_list(item, "tool_calls"):
            yield {**_call(get(call, "function") or call), "id": first(call, _IDS)}
    elif has(item, "tool_name"):
        yield {**_call(item), **_ended(item)}


def _run_item(item: Any, raw: Any, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the signals in an item of the OpenAI Agents SDK; a handoff to another agent is not a tool call."""
    if kind == "tool_call_item":
        # Hosted tools have a type instead of a name.
        name = first(raw, _NAMES) or str(kind_of(raw) or "tool").replace("_call", "")
        yield {"id": first(raw, _IDS), "name": str(name), "args": _arguments(get(raw, "arguments"))}
    elif kind == "tool_call_output_item":
        yield {"id": first(raw, _IDS), "name": "", "result": plain(get(item, "output"))}


def _returned(item: Any, kind: str) -> dict[str, Any]:
    """Return the result of a call in a separate message or part."""
    outcome = first(item, ("status", "outcome")) or "success"
    failed = kind == "retry-prompt" or outcome != "success" or bool(get(item, "tool_call_error"))
    return {**_named(item), **_end(get(item, "content"), failed=failed)}


def _ended(record: Any) -> dict[str, Any]:
    """Return the result or error in a record of a call; empty if it contains neither."""
    output = get(record, "tool_output")
    value = first(output, ("raw_output", "content")) if output is not None else get(record, "result")
    error = get(record, "error")
    if error is not None:
        return _end(error, failed=True)
    failed = bool(get(record, "tool_call_error") or get(output, "is_error"))
    return {} if value is None else _end(value, failed=failed)


def _end(value: Any, *, failed: bool) -> dict[str, Any]:
    made = plain(value)
    return {"error": made if isinstance(made, str) else json.dumps(made)} if failed else {"result": made}


def _call(entry: Any) -> dict[str, Any]:
    return {**_named(entry), "args": _arguments(first(entry, _ARGUMENTS))}


def _named(entry: Any) -> dict[str, Any]:
    return {"id": first(entry, _IDS), "name": str(first(entry, _NAMES) or "")}


def _arguments(value: Any) -> Any:
    """Return arguments as JSON; many frameworks keep them as the model's text."""
    if isinstance(value, str):
        try:
            read = json.loads(value)
        except ValueError:
            return value
        return read if isinstance(read, dict) else value
    return {} if value is None else plain(value)
