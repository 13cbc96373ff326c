"""Chains and graphs of LangChain that LangServe offers at ``/invoke`` and ``/stream``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agenteval.agents.http.shapes.base import (
    Shape,
    broken_off,
    kind_of,
    list_of,
    object_of,
    total_usage,
    usage_of,
)
from agenteval.agents.http.stream import Event, json_of
from agenteval.agents.reply_parts import raise_error, reported, text_of_blocks
from agenteval.agents.tool_calls import calls_in
from agenteval.suite.json_path import parse_path

_OUTPUT = parse_path("output")
_ANSWERS = ("output", "answer", "response", "result", "text")
_OF_MODEL = frozenset({"ai", "AIMessageChunk", "assistant"})
_OF_USER = frozenset({"human", "user"})


def _body(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"input": values["input"]}


def _read(document: Any) -> dict[str, Any]:
    raise_error(document)
    output = _OUTPUT.find(document, "shape langserve:")
    messages = list(_messages(output))
    return {
        "response": _answer(output, messages),
        "tool_calls": calls_in([*messages, *_steps(output)]),
        "usage": _usage(messages),
    }


def _answer(output: Any, messages: Sequence[Mapping[str, Any]]) -> Any:
    if messages:
        said = [message for message in messages if _speaker(message) in _OF_MODEL]
        return text_of_blocks(said[-1].get("content")) if said else None
    if isinstance(output, dict):
        silent = None if "messages" in output else output
        return next((output[name] for name in _ANSWERS if output.get(name) is not None), silent)
    return output


def _messages(output: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the messages of this turn; the state of a graph may begin with earlier ones."""
    if isinstance(output, dict) and "content" in output and isinstance(output.get("type"), str):
        yield output
        return
    listed = output.get("messages") if isinstance(output, dict) else output
    found = [item for item in list_of(listed) if isinstance(item, dict)]
    if not all("content" in item for item in found):
        return
    starts = [number for number, item in enumerate(found) if _speaker(item) in _OF_USER]
    yield from found[starts[-1] + 1 :] if starts else found


def _speaker(message: Mapping[str, Any]) -> str:
    return kind_of(message) or str(message.get("role"))


def _steps(output: Any) -> Iterator[dict[str, Any]]:
    """Yield the calls of an agent executor."""
    for step in list_of(object_of(output).get("intermediate_steps")):
        action, result = step if isinstance(step, list) and len(step) == 2 else (step, None)
        if isinstance(action, dict) and isinstance(action.get("tool"), str):
            yield {"name": action["tool"], "args": action.get("tool_input"), "result": result}


def _usage(messages: Iterable[Mapping[str, Any]]) -> dict[str, int] | None:
    return total_usage(usage_of(item.get("usage_metadata"), ["input_tokens"], ["output_tokens"]) for item in messages)


def _join(events: Sequence[Event]) -> Any:
    chunks: list[Any] = []
    has_ended = False
    for event in events:
        if event.name == "error":
            raise reported(json_of(event))
        if event.name == "data":
            chunks.append(json_of(event))
        has_ended |= event.name == "end"
    if not has_ended:
        raise broken_off("the event `end`")
    return {"output": _added(chunks)}


def _added(chunks: Sequence[Any]) -> Any:
    """Return the sum of the chunks of a stream, as LangChain adds them."""
    if len(chunks) == 1:
        return chunks[0]
    if chunks and all(isinstance(chunk, str) for chunk in chunks):
        return "".join(chunks)
    objects = [chunk for chunk in chunks if isinstance(chunk, dict)]
    if objects and all("content" in chunk and "type" in chunk for chunk in objects):
        return _added_message(objects)
    if objects and all(_is_update(chunk) for chunk in objects):
        return {"messages": [item for chunk in objects for node in chunk.values() for item in node["messages"]]}
    by_key: dict[str, list[Any]] = {}
    for chunk in objects:
        for key, value in chunk.items():
            by_key.setdefault(key, []).append(value)
    return {key: _added_values(values) for key, values in by_key.items()}


def _added_values(values: Sequence[Any]) -> Any:
    if all(isinstance(value, str) for value in values):
        return "".join(values)
    if all(isinstance(value, list) for value in values):
        return [item for value in values for item in value]
    return values[-1]


def _added_message(chunks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    calls: dict[str, dict[str, list[str]]] = {}
    for piece in (object_of(piece) for chunk in chunks for piece in list_of(chunk.get("tool_call_chunks"))):
        call = calls.setdefault(str(piece.get("index")), {"id": [], "name": [], "args": []})
        for key, pieces in call.items():
            pieces.append(str(piece.get(key) or ""))
    whole = [{key: "".join(pieces) for key, pieces in call.items()} for call in calls.values()]
    listed = [call for chunk in chunks for call in list_of(chunk.get("tool_calls"))]
    usage = [chunk["usage_metadata"] for chunk in chunks if chunk.get("usage_metadata")]
    return {
        "type": "ai",
        "content": "".join(text_of_blocks(chunk.get("content")) or "" for chunk in chunks),
        "tool_calls": whole or listed,
        "usage_metadata": _usage([{"usage_metadata": one} for one in usage]),
    }


def _is_update(chunk: Mapping[str, Any]) -> bool:
    """Return whether a chunk contains new messages by node of a graph."""
    nodes = list(chunk.values())
    return bool(nodes) and all(isinstance(node, dict) and isinstance(node.get("messages"), list) for node in nodes)


def _matches(document: Mapping[str, Any]) -> bool:
    metadata = document.get("metadata")
    return "output" in document and isinstance(metadata, dict) and "run_id" in metadata


SHAPE = Shape("langserve", _body, _read, _join, _matches)
