"""Understands tool calls in the forms of OpenAI, Anthropic, Google, LangChain and the Vercel AI SDK.

A list of tool calls may contain calls of the agent protocol, calls and results of the APIs of models, and whole
messages with calls and results in them.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: Keys of the parts of a tool call, the usual ones first.
NAMES = ("name", "toolName", "tool_name", "tool")
ARGUMENTS = ("args", "arguments", "input", "parameters", "params", "kwargs", "tool_input", "tool_args")
RESULTS = ("result", "output")
_IDS = ("call_id", "id", "tool_call_id", "toolCallId", "tool_use_id")
_ENDED_IDS = ("tool_call_id", "toolCallId", "tool_use_id", "call_id", "id")
#: Roles and types of messages; LangChain's types among them.
_MESSAGES = frozenset(
    {"assistant", "user", "system", "developer", "model", "message", "ai", "human", "AIMessageChunk"}
)
_TOOL_MESSAGES = frozenset({"tool", "function"})
# Blocks of messages that are no calls.
_OTHER = frozenset(
    {
        *("text", "thinking", "redacted_thinking", "reasoning", "image", "document", "file", "refusal"),
        *("input_text", "input_image", "input_file", "output_text", "summary_text", "mcp_list_tools"),
    }
)


@dataclass(slots=True)
class _Call:
    """A call: its id, if it has one, and its fields in the agent protocol."""

    id: str | None
    name: str
    fields: dict[str, Any] = field(default_factory=dict)
    has_ended: bool = False


@dataclass(frozen=True, slots=True)
class _End:
    """The result or the error of a call that is listed elsewhere."""

    id: str | None
    name: str | None
    fields: Mapping[str, Any]


def protocol_calls(items: Sequence[Any]) -> list[Any]:
    """Return tool calls as the agent protocol writes them: ``name``, ``args``, ``result`` and ``error``.

    Args:
        items: calls, their results, and messages that contain them.

    Returns:
        The calls in order, with the results that were found. Items of no known form are returned unchanged.
    """
    collected = _Collected()
    for item in items:
        if not collected.add(item) and not _is_message(item):
            collected.calls.append(item)
    return collected.calls


def calls_in(items: Sequence[Any]) -> list[Any]:
    """Return the same for the items of a list that contains other things too; these are left out."""
    collected = _Collected()
    for item in items:
        collected.add(item)
    return collected.calls


class _Collected:
    """Calls in the agent protocol; results belong to them by id or, without an id, by name."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self._by_id: dict[str, _Call] = {}
        self._by_name: dict[str, deque[_Call]] = {}

    def add(self, item: Any) -> bool:
        """Add what an item contains; return whether it contains a call or a result."""
        signals = list(_signals(item)) if isinstance(item, dict) else []
        for signal in signals:
            if isinstance(signal, _End):
                self._end(signal)
            else:
                self._call(signal)
        return bool(signals)

    def _call(self, call: _Call) -> None:
        """Add a call, unless another form of the same call was added."""
        if call.id is not None:
            if call.id in self._by_id:
                return
            self._by_id[call.id] = call
        self._by_name.setdefault(call.name, deque()).append(call)
        self.calls.append(call.fields)

    def _end(self, end: _End) -> None:
        """Add a result to its call; one without a call is left out."""
        call = self._by_id.get(end.id) if end.id is not None else self._next(end.name)
        if call is not None:
            call.has_ended = True
            call.fields.update(end.fields)

    def _next(self, name: str | None) -> _Call | None:
        """Return the first call of a tool without a result."""
        waiting = self._by_name.get(name or "", deque())
        while waiting and waiting[0].has_ended:
            waiting.popleft()
        return waiting[0] if waiting else None


def is_call(item: Any) -> bool:
    """Return whether a JSON value is a tool call, or a message with one."""
    if not isinstance(item, dict):
        return False
    if any(name in item for name in NAMES) and not any(
        name in item for name in (*ARGUMENTS, "function", "functionCall", "function_call", "tool_calls", "toolCalls")
    ):
        return False
    return any(isinstance(signal, _Call) for signal in _signals(item))


def parsed_arguments(value: Any) -> Any:
    """Return arguments that a model wrote as JSON text as JSON; other values unchanged."""
    if not isinstance(value, str):
        return value
    if not value.strip():
        return {}
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return read if isinstance(read, dict) else value


def _signals(item: Mapping[str, Any]) -> Iterator[_Call | _End]:
    """Yield the calls and results in an item of a list of tool calls."""
    if _is_message(item):
        yield from _of_message(item)
        return
    of_api = list(_of_api(item))
    if of_api or str(item.get("type")) in _OTHER:
        yield from of_api
        return
    name = _first_text(item, NAMES)
    if name is not None:
        yield _call(item, name, _first(item, ARGUMENTS))


def _of_message(message: Mapping[str, Any]) -> Iterator[_Call | _End]:
    kind = _kind(message)
    if kind in _TOOL_MESSAGES:
        failed = message.get("status") == "error" or bool(message.get("error"))
        value = message.get("error") or _content(message.get("content"))
        fields = {"error" if failed else "result": value}
        yield _End(_first_text(message, _ENDED_IDS), _first_text(message, NAMES), fields)
        return
    blocks = message.get("content")
    for part in (blocks, message.get("parts")):
        for block in part if isinstance(part, list) else ():
            if isinstance(block, dict):
                yield from _of_api(block)
    for key in ("tool_calls", "toolCalls"):
        calls = message.get(key)
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                yield from _signals(call)
    if isinstance(message.get("function_call"), dict):
        yield from _of_api({"function_call": message["function_call"]})


def _of_api(item: Mapping[str, Any]) -> Iterator[_Call | _End]:
    """Yield the call or the result in an item whose type or key shows the API of a model."""
    kind = str(item.get("type") or "")
    for key in ("function", "functionCall", "function_call"):
        inner = item.get(key)
        if isinstance(inner, dict) and isinstance(inner.get("name"), str):
            yield _call(item, inner["name"], _first(inner, ARGUMENTS) or {})
            return
    inner = item.get("functionResponse", item.get("function_response"))
    if isinstance(inner, dict):
        yield _End(_first_text(inner, ("id",)), _first_text(inner, NAMES), {"result": inner.get("response")})
    elif kind.endswith("tool_use") and isinstance(item.get("name"), str):
        yield _call(item, item["name"], item.get("input") or {})
    elif kind.endswith("tool_result"):
        name = "error" if item.get("is_error") else "result"
        yield _End(_first_text(item, _ENDED_IDS), None, {name: _content(item.get("content"))})
    elif kind.endswith("_call_output"):
        yield _End(_first_text(item, _ENDED_IDS), None, {"result": item.get("output")})
    elif kind.endswith("_call"):
        # The hosted tools of OpenAI have no name.
        name = _first_text(item, NAMES) or kind.removesuffix("_call")
        yield _call(item, name, _first(item, (*ARGUMENTS, "action", "code", "queries")))


def _call(item: Mapping[str, Any], name: str, arguments: Any) -> _Call:
    fields: dict[str, Any] = {"name": name, "args": parsed_arguments(arguments)}
    fields.update({key: item[key] for key in ("error", "duration_ms") if item.get(key) is not None})
    result = _first(item, RESULTS)
    if result is not None:
        fields["result"] = result
    return _Call(_first_text(item, _IDS), name, fields)


def _content(value: Any) -> Any:
    """Return the content of a result: blocks of text become a text, or a list of texts."""
    if not isinstance(value, list) or not value:
        return value
    texts = [item.get("text") if isinstance(item, dict) else None for item in value]
    if not all(isinstance(text, str) for text in texts):
        return value
    return texts[0] if len(texts) == 1 else texts


def _kind(item: Mapping[str, Any]) -> Any:
    """Return the role of a message, or its type."""
    role = item.get("role")
    return role if isinstance(role, str) else item.get("type")


def _is_message(item: Any) -> bool:
    if not isinstance(item, dict):
        return False
    kind = _kind(item)
    if not isinstance(kind, str):
        return False
    if kind in _TOOL_MESSAGES:
        return "content" in item
    return kind in _MESSAGES or (kind in _OTHER and "name" not in item)


def _first(item: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((item[name] for name in names if item.get(name) is not None), None)


def _first_text(item: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((item[name] for name in names if isinstance(item.get(name), str) and item[name]), None)
