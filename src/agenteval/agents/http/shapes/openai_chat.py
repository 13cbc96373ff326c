"""Chat completions of OpenAI, which many other servers offer too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agenteval.agents.http.shapes.base import (
    Shape,
    broken_off,
    list_of,
    object_of,
    usage_of,
)
from agenteval.agents.http.stream import Event, objects_of
from agenteval.agents.reply_parts import raise_error, text_of_blocks
from agenteval.agents.tool_calls import calls_in
from agenteval.suite.json_path import parse_path

_MESSAGE = parse_path("choices[0].message")


def _body(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"messages": values["messages"]}


def _read(document: Any) -> dict[str, Any]:
    raise_error(document)
    message = _MESSAGE.find(document, "shape openai-chat:")
    message = {**object_of(message), "role": "assistant"}
    text = text_of_blocks(message.get("content"))
    return {
        "response": text or message.get("refusal") or text,
        "tool_calls": calls_in([message]),
        "usage": usage_of(document.get("usage"), ["prompt_tokens"], ["completion_tokens"]),
    }


def _join(events: Sequence[Event]) -> Any:
    texts: dict[str, list[str]] = {"content": [], "refusal": []}
    calls: dict[str, _Call] = {}
    usage, has_ended = None, False
    for chunk in objects_of(events):
        raise_error(chunk)
        usage = chunk.get("usage") or usage
        choice = object_of(next(iter(list_of(chunk.get("choices"))), None))
        # Servers without tokens in their streams send a whole message.
        delta = object_of(choice.get("delta") or choice.get("message"))
        has_ended |= choice.get("finish_reason") is not None
        for name, pieces in texts.items():
            said = text_of_blocks(delta.get(name))
            pieces.extend([] if said is None else [said])
        for position, piece in enumerate(map(object_of, list_of(delta.get("tool_calls")))):
            calls.setdefault(str(piece.get("index", position)), _Call()).add(piece)
    if not has_ended:
        raise broken_off("a finish_reason")
    message = {
        **{name: "".join(pieces) if pieces else None for name, pieces in texts.items()},
        "tool_calls": [*map(_Call.whole, calls.values())],
    }
    return {"choices": [{"message": message}], "usage": usage}


class _Call:
    """A tool call, whose arguments arrive in pieces."""

    def __init__(self) -> None:
        self._id: Any = None
        self._name: list[str] = []
        self._arguments: list[str] = []

    def add(self, piece: Mapping[str, Any]) -> None:
        """Add one piece."""
        function = object_of(piece.get("function"))
        self._id = self._id or piece.get("id")
        self._name.append(str(function.get("name") or ""))
        self._arguments.append(str(function.get("arguments") or ""))

    def whole(self) -> dict[str, Any]:
        """Return the call."""
        function = {"name": "".join(self._name), "arguments": "".join(self._arguments)}
        return {"id": self._id, "type": "function", "function": function}


def _matches(document: Mapping[str, Any]) -> bool:
    return str(document.get("object") or "").startswith("chat.completion") or "choices" in document


SHAPE = Shape("openai-chat", _body, _read, _join, _matches)
