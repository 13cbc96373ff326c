"""Responses of OpenAI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agenteval.agents.http.shapes.base import (
    Shape,
    broken_off,
    kind_of,
    list_of,
    object_of,
    usage_of,
)
from agenteval.agents.http.stream import Event, objects_of
from agenteval.agents.reply_parts import raise_error, reported, text_of_blocks
from agenteval.agents.tool_calls import calls_in
from agenteval.suite.json_path import parse_path

_OUTPUT = parse_path("output[*]")
_LAST = frozenset({"response.completed", "response.incomplete", "response.failed"})


def _body(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"input": values["messages"]}


def _read(document: Any) -> dict[str, Any]:
    raise_error(document)
    items = _OUTPUT.find(document, "shape openai-responses:")
    if document.get("status") == "failed":
        raise reported("the response failed")
    messages = [item for item in map(object_of, items) if kind_of(item) == "message"]
    texts = [text_of_blocks(message.get("content")) or _refusal(message.get("content")) for message in messages]
    return {
        "response": "\n\n".join(text for text in texts if text) if messages else None,
        "tool_calls": calls_in(items),
        "usage": usage_of(document.get("usage"), ["input_tokens"], ["output_tokens"]),
    }


def _refusal(content: Any) -> str:
    return "".join(str(block.get("refusal") or "") for block in map(object_of, list_of(content)))


def _join(events: Sequence[Event]) -> Any:
    whole = None
    for event in objects_of(events):
        if kind_of(event) == "error":
            raise reported(event.get("error") or event)
        if kind_of(event) in _LAST:
            whole = event.get("response")
    if whole is None:
        raise broken_off("response.completed")
    return whole


def _matches(document: Mapping[str, Any]) -> bool:
    return document.get("object") == "response" or kind_of(document).startswith("response.")


SHAPE = Shape("openai-responses", _body, _read, _join, _matches)
