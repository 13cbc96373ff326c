"""Messages of Anthropic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agenteval.agents.http.shapes.base import (
    Shape,
    broken_off,
    kind_of,
    object_of,
    usage_of,
)
from agenteval.agents.http.stream import Event, objects_of
from agenteval.agents.reply_parts import raise_error, reported, text_of_blocks
from agenteval.agents.tool_calls import calls_in
from agenteval.suite.json_path import parse_path

_CONTENT = parse_path("content[*]")
_INPUT_TOKENS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
# The API requires a limit of output tokens.
_MAX_TOKENS = 4096


def _body(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"messages": values["messages"], "max_tokens": _MAX_TOKENS}


def _read(document: Any) -> dict[str, Any]:
    raise_error(document)
    blocks = _CONTENT.find(document, "shape anthropic-messages:")
    return {
        "response": text_of_blocks(blocks),
        "tool_calls": calls_in([{"role": "assistant", "content": blocks}]),
        "usage": usage_of(document.get("usage"), _INPUT_TOKENS, ["output_tokens"]),
    }


def _join(events: Sequence[Event]) -> Any:
    usage: dict[str, Any] = {}
    blocks: dict[str, _Block] = {}
    has_ended = False
    for event in objects_of(events):
        kind, index = kind_of(event), str(event.get("index"))
        if kind == "error":
            raise reported(event.get("error"))
        usage |= object_of(object_of(event.get("message")).get("usage")) | object_of(event.get("usage"))
        if kind == "content_block_start":
            blocks[index] = _Block(object_of(event.get("content_block")))
        elif kind == "content_block_delta" and index in blocks:
            blocks[index].add(object_of(event.get("delta")))
        has_ended |= kind == "message_stop"
    if not has_ended:
        raise broken_off("message_stop")
    return {"content": [block.whole() for block in blocks.values()], "usage": usage}


class _Block:
    """A block of content, whose text or input arrives in pieces."""

    def __init__(self, start: Mapping[str, Any]) -> None:
        self._start = start
        self._text = [str(start.get("text") or "")]
        self._input: list[str] = []

    def add(self, delta: Mapping[str, Any]) -> None:
        """Add one piece."""
        self._text.append(str(delta.get("text") or ""))
        self._input.append(str(delta.get("partial_json") or ""))

    def whole(self) -> dict[str, Any]:
        """Return the block."""
        text, given = "".join(self._text), "".join(self._input)
        return {**self._start, **({"text": text} if text else {}), **({"input": given} if given else {})}


def _matches(document: Mapping[str, Any]) -> bool:
    is_message = kind_of(document) == "message" and isinstance(document.get("content"), list)
    return is_message or kind_of(document) == "message_start"


SHAPE = Shape("anthropic-messages", _body, _read, _join, _matches)
