"""Understands tool calls in the forms of OpenAI, Anthropic, Google, LangChain and others."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from agenteval.core.errors import AgentError
from agenteval.core.records import dataclass, field
from agenteval.core.secrets import shortened
from agenteval.core.text import text_of
from agenteval.suite.forms import JsonPath, Step

# Understands tool calls in the forms of OpenAI, Anthropic, Google, LangChain and the Vercel AI SDK.
#
# A list of tool calls may contain calls of the agent protocol, calls and results of the APIs of models, and whole
# messages with calls and results in them.


#: Keys of the parts of a tool call, the usual ones first.
NAMES = ("name", "toolName", "tool_name", "tool")
ARGUMENTS = ("args", "arguments", "input", "parameters", "params", "kwargs", "tool_input", "tool_args")
RESULTS = ("result", "output")
_ENDS = frozenset({"result", "error"})
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


@dataclass
class _Call:
    id: str | None
    name: str
    fields: dict[str, Any] = field(default_factory=dict)
    has_ended: bool = False


@dataclass(frozen=True)
class _End:
    id: str | None
    name: str | None
    fields: Mapping[str, Any]


def protocol_calls(items: Sequence[Any]) -> list[Any]:
    """Return tool calls as the agent protocol writes them: ``name``, ``args``, ``result`` and ``error``.

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
        """Add a call, or the result that another form of an added call has; some models use an id again."""
        call.has_ended = not _ENDS.isdisjoint(call.fields)
        if call.id is not None:
            known = self._by_id.get(call.id)
            if known is not None and known.name == call.name and known.fields["args"] == call.fields["args"]:
                known.fields.update({key: call.fields[key] for key in _ENDS & call.fields.keys()})
                known.has_ended = known.has_ended or call.has_ended
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
    """Return arguments that a model wrote as JSON text, or as text in JSON text, as JSON; others unchanged."""
    read = value
    for _ in range(2):
        if not isinstance(read, str):
            break
        if not read.strip():
            return {}
        try:
            read = json.loads(read)
        except (ValueError, RecursionError):
            return value
    return read if isinstance(read, dict) else value


def _signals(item: Mapping[str, Any]) -> Iterator[_Call | _End]:
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
    if not isinstance(value, list) or not value:
        return value
    texts = [item.get("text") if isinstance(item, dict) else None for item in value]
    if not all(isinstance(text, str) for text in texts):
        return value
    return texts[0] if len(texts) == 1 else texts


def _kind(item: Mapping[str, Any]) -> Any:
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


_SHOWN = 300
_TEXT_BLOCKS = ("text", "output_text")


def reported(error: Any) -> AgentError:
    """Return the error that a reply contains."""
    message = error.get("message") if isinstance(error, dict) else error
    said = message if isinstance(message, str) and message else text_of(error)
    return AgentError(f"the agent reported an error: {shortened(said, _SHOWN)}")


def raise_error(reply: Any) -> None:
    """Raise the error that a reply contains below ``error``, if any; empty values and false are no errors."""
    if isinstance(reply, dict) and reply.get("error"):
        raise reported(reply["error"])


def text_of_blocks(content: Any) -> str | None:
    """Return the text of a message: its content, or the text blocks in it; ``None`` without any."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts = [item if isinstance(item, str) else _block_text(item) for item in content]
    found = [text for text in texts if text is not None]
    return "".join(found) if found else None


def _block_text(block: Any) -> str | None:
    if isinstance(block, dict) and block.get("type") in _TEXT_BLOCKS and isinstance(block.get("text"), str):
        return str(block["text"])
    return None


# Limits of a search, for replies of any size.
_MOST_VALUES = 5000
_MOST_ITEMS = 20
_SINGLE = re.compile("tool|call|function", re.IGNORECASE)


def find_mapping(documents: Sequence[Any]) -> str | None:
    """Return the mapping, as YAML, that finds the tool calls in a reply; ``None`` if it contains none."""
    waiting: deque[tuple[Any, tuple[Step, ...]]] = deque((document, ()) for document in documents[:_MOST_ITEMS])
    for _ in range(_MOST_VALUES):
        if not waiting:
            break
        value, steps = waiting.popleft()
        found = _mapping_at(value, steps)
        if found is not None:
            return shortened(f"response: {{tool_calls: {found}}}", _SHOWN)
        if isinstance(value, dict):
            waiting.extend((item, (*steps, key)) for key, item in islice(value.items(), _MOST_VALUES))
        elif isinstance(value, list):
            waiting.extend((item, (*steps, None)) for item in value[:_MOST_ITEMS])
    return None


def _mapping_at(value: Any, steps: tuple[Step, ...]) -> str | None:
    """Return what leads to the calls in a value, if the value consists of calls."""
    if isinstance(value, dict):
        is_named = bool(steps) and isinstance(steps[-1], str) and _SINGLE.search(steps[-1])
        return _written(steps) if is_named and is_call(value) else None
    if not isinstance(value, list):
        return None
    for item in value[:_MOST_ITEMS]:
        if is_call(item):
            return _written(steps)
    return None


def _written(steps: tuple[Step, ...]) -> str:
    text = str(JsonPath(steps))
    return f'"{text}"' if "[" in text and '"' not in text else f"'{text}'" if "[" in text else text
