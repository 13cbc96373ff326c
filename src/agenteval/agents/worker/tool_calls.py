"""Finds the tool calls in what agents of any framework return.

This file runs in the worker process under the user's Python (3.8 or newer) and needs nothing but the
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
    """Every call with its result, in order, from the first place that knows of any."""
    for source in (events, list(_records(result)), messages):
        calls = _paired(signal for item in source for signal in _signals(item))
        if calls:
            # Pydantic AI has the model call a tool to hand over structured output.
            output_tool = getattr(result, "_output_tool_name", None)
            return [call for call in calls if call["name"] != output_tool]
    return []


def _paired(signals: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Calls and the results that came for them: by id, and without one by name."""
    calls: list[dict[str, Any]] = []
    for signal in signals:
        pending = next((call for call in calls if _belongs(signal, call)), None)
        if pending is not None:
            pending.update({key: signal[key] for key in _ENDS if key in signal})
        elif "args" in signal:
            calls.append(signal)
    return [{key: value for key, value in call.items() if key != "id"} for call in calls]


def _belongs(signal: Mapping[str, Any], call: Mapping[str, Any]) -> bool:
    """Whether a signal is the end of a call that has none yet."""
    if any(key in call for key in _ENDS) or not any(key in signal for key in _ENDS):
        return False
    if signal["id"] is not None or call["id"] is not None:
        return bool(signal["id"] == call["id"])
    return "args" not in signal and signal["name"] == call["name"]


def _records(result: Any) -> Iterator[Any]:
    """What results keep of their tool calls beside messages."""
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
    """The calls and results in a message, a part of one, an event, or a record of a call."""
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
    """Items of the OpenAI Agents SDK; handing over to another agent is no tool call."""
    if kind == "tool_call_item":
        # Hosted tools have no name, but their type says which one it is.
        name = first(raw, _NAMES) or str(kind_of(raw) or "tool").replace("_call", "")
        yield {"id": first(raw, _IDS), "name": str(name), "args": _arguments(get(raw, "arguments"))}
    elif kind == "tool_call_output_item":
        yield {"id": first(raw, _IDS), "name": "", "result": plain(get(item, "output"))}


def _returned(item: Any, kind: str) -> dict[str, Any]:
    """The result of a call as a message, or part of one, of its own."""
    outcome = first(item, ("status", "outcome")) or "success"
    failed = kind == "retry-prompt" or outcome != "success" or bool(get(item, "tool_call_error"))
    return {**_named(item), **_end(get(item, "content"), failed=failed)}


def _ended(record: Any) -> dict[str, Any]:
    """What a record of a call says about its end; nothing if it does not know."""
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
    """Arguments as JSON; many frameworks keep them as the text that the model wrote."""
    if isinstance(value, str):
        try:
            read = json.loads(value)
        except ValueError:
            return value
        return read if isinstance(read, dict) else value
    return {} if value is None else plain(value)
