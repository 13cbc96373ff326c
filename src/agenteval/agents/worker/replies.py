"""Reads the results of agents of any framework: the answer, the tool calls and the token usage.

Frameworks are recognised by the fields of their results; none is imported. This file runs in the
worker process under the user's Python (3.8 or newer) and needs only the standard library.
"""

from __future__ import annotations

import inspect
import json
from typing import Any, Iterable, Iterator, Mapping, Sequence

from agenteval.agents.worker.references import SPEAKERS, as_list, fields_of, first, get, has, kind_of, plain

_NAMES = ("tool_name", "name", "tool")
_ARGUMENTS = ("args", "arguments", "tool_args", "tool_kwargs", "tool_input")
_IDS = ("tool_call_id", "call_id", "tool_id", "id")


def tool_calls_of(result: Any, events: Sequence[Any], messages: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the calls of the first source that contains any, and their results, each as a separate item."""
    for source in (events, list(_records(result)), messages):
        signals = [signal for item in source for signal in _signals(item)]
        # In Pydantic AI the model calls a tool to return structured output.
        output_tool = getattr(result, "_output_tool_name", None)
        if any("args" in signal for signal in signals):
            return [_item(signal) for signal in signals if "args" not in signal or signal["name"] != output_tool]
    return []


def _item(signal: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call, or the message of a tool; the reader of replies joins them."""
    if "args" in signal:
        return dict(signal)
    status, content = ("error", signal["error"]) if "error" in signal else ("success", signal.get("result"))
    named = {"tool_call_id": signal["id"], "name": signal["name"]}
    return {"role": "tool", "status": status, "content": content, **named}


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
        yield {"id": first(raw, _IDS), "name": str(name), "args": plain(get(raw, "arguments") or {})}
    elif kind == "tool_call_output_item":
        yield {"id": first(raw, _IDS), "name": "", "result": plain(get(item, "output"))}


def _returned(item: Any, kind: str) -> dict[str, Any]:
    outcome = first(item, ("status", "outcome")) or "success"
    failed = kind == "retry-prompt" or outcome != "success" or bool(get(item, "tool_call_error"))
    return {**_named(item), **_end(get(item, "content"), failed=failed)}


def _ended(record: Any) -> dict[str, Any]:
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
    return {**_named(entry), "args": plain(first(entry, _ARGUMENTS) or {})}


def _named(entry: Any) -> dict[str, Any]:
    return {"id": first(entry, _IDS), "name": str(first(entry, _NAMES) or "")}


_ANSWERS = ("output", "final_output", "content", "text", "response")
# The kinds of messages in a stream that the agent does not say.
_OTHERS = ("tool", "ToolMessageChunk", "human", "user", "system")
_TEXT_BLOCKS = ("text", "output_text")
_INPUT_TOKENS = ("input_tokens", "request_tokens", "prompt_tokens", "prompt_token_count")
_OUTPUT_TOKENS = ("output_tokens", "response_tokens", "completion_tokens", "candidates_token_count")


class Chunks(list):  # type: ignore[type-arg] # Python 3.8 cannot subscript it here
    """The chunks of a streamed result."""


def reply_of(result: Any, events: Sequence[Any] = ()) -> Mapping[str, Any]:
    """Convert a framework's result to a reply of the agent protocol.

    Args:
        events: the framework's events during the run.
    """
    messages = _messages(result)
    return {
        "response": _answer(result, messages),
        "tool_calls": tool_calls_of(result, events, messages),
        "usage": _usage(result, messages),
    }


def _answer(result: Any, messages: Sequence[Any]) -> Any:
    """Return the text of the answer; ``None`` if the agent said nothing."""
    if isinstance(result, Chunks):
        texts = [_message_text(chunk) for chunk in result if kind_of(chunk) not in _OTHERS]
        return "".join(text for text in texts if text) if any(text is not None for text in texts) else None
    if isinstance(result, str):
        return result
    if has(result, "return_values"):
        # The last step of an agent of LangChain without an executor.
        values = get(result, "return_values")
        return _text(get(values, "output") if has(values, "output") else values)
    # The state of a graph may contain any other fields besides its messages.
    state = isinstance(result, Mapping) and messages
    for name in ("structured_response", *(_ANSWERS[:2] if state else _ANSWERS)):
        if has(result, name):
            return _text(get(result, name))
    said = [message for message in messages if kind_of(message) in {*SPEAKERS, "tool"}]
    if said:
        return _message_text(said[-1])
    fields = result if isinstance(result, Mapping) else fields_of(result)
    if state or (fields is not None and any(name in fields for name in _ANSWERS)):
        return None
    return _text(result)


def _text(value: Any) -> Any:
    """Return a value as an answer: a message's text, text unchanged, anything else as JSON."""
    if isinstance(value, str):
        return value
    if kind_of(value) and has(value, "content"):
        return _message_text(value)
    if isinstance(value, (list, tuple)) and any(_is_text_block(item) for item in value):
        return _words(value)
    if str(value) == object.__repr__(value) and fields_of(value) is None:
        raise TypeError(f"the agent returned a {type(value).__name__}, in which no answer can be found")
    made = plain(value)
    return made if isinstance(made, str) else json.dumps(made, ensure_ascii=False)


def _message_text(message: Any) -> Any:
    for name in ("content", "text", "delta"):
        value = get(message, name)
        if isinstance(value, str):
            return value
        if isinstance(value, (list, tuple)):
            return _words(value)
    return None if message is None or kind_of(message) else _text(message)


def _words(blocks: Iterable[Any]) -> str:
    return "".join(
        item if isinstance(item, str) else str(get(item, "text"))
        for item in blocks
        if isinstance(item, str) or _is_text_block(item)
    )


def _is_text_block(item: Any) -> bool:
    return get(item, "type") in _TEXT_BLOCKS and isinstance(get(item, "text"), str)


# The tokens


def _usage(result: Any, messages: Iterable[Any]) -> Mapping[str, int] | None:
    places = (get(result, "usage"), get(result, "metrics"), get(get(result, "context_wrapper"), "usage"))
    for place in places:
        found = _tokens(place() if inspect.isroutine(place) else place)
        if found:
            return found
    total: dict[str, int] = {}
    for message in messages:
        for name, count in _tokens(get(message, "usage_metadata")).items():
            total[name] = total.get(name, 0) + count
    return total or None


def _tokens(usage: Any) -> dict[str, int]:
    counts = (("input_tokens", first(usage, _INPUT_TOKENS)), ("output_tokens", first(usage, _OUTPUT_TOKENS)))
    return {
        name: count for name, count in counts if isinstance(count, int) and not isinstance(count, bool) and count >= 0
    }


def _messages(result: Any) -> Sequence[Any]:
    """Return the messages of a run; a result that is a message is the only one."""
    if isinstance(result, Chunks):
        return result
    for name in ("new_messages", "all_messages"):
        method = getattr(result, name, None)
        if callable(method):
            return list(method())
    return as_list(result, "messages") or ([result] if kind_of(result) in SPEAKERS else [])
