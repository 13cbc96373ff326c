"""Reads the results of agents of any framework: the answer, the tool calls and the token usage.

Frameworks are recognised by the fields of their results; none is imported. This file runs in the
worker process under the user's Python (3.8 or newer) and needs only the standard library.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agenteval.agents.worker.fields import SPEAKERS, as_list, fields_of, first, get, has, kind_of, plain
from agenteval.agents.worker.tool_calls import tool_calls_of

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
        result: the return value of the agent's method.
        events: the framework's events during the run.

    Raises:
        TypeError: the result does not contain an answer.
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
    """Return a value as an answer: a message's text, text unchanged, anything else as JSON.

    Raises:
        TypeError: it is an object without known fields.
    """
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
    """Return the text of a message or chunk; ``None`` if it has none."""
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
