"""The shapes of requests and replies by name; ``suite/agent_keys.py`` lists the same names for configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agenteval.agents import openai_shapes
from agenteval.agents.http_response import StreamEvent, objects_of
from agenteval.agents.openai_shapes import Shape, broken_off, kind_of, list_of, object_of, total_usage, usage_of
from agenteval.agents.tool_calls import calls_in, raise_error, reported, text_of_blocks
from agenteval.suite.forms import parse_path

_MESSAGES = parse_path("messages[*]")


def _ag_ui_body(values: Mapping[str, Any]) -> dict[str, Any]:
    session, turn = values["session"], values["turn"]
    messages = [{"id": f"{session}/{number}", **message} for number, message in enumerate(values["messages"])]
    return {
        "threadId": session,
        "runId": f"{session}/run-{turn}",
        "state": {},
        "messages": messages,
        "tools": [],
        "context": [],
        "forwardedProps": {},
    }


def _ag_ui_read(document: Any) -> dict[str, Any]:
    raise_error(document)
    messages = [item for item in _MESSAGES.find(document, "shape ag-ui:") if isinstance(item, dict)]
    said = [text_of_blocks(message.get("content")) for message in messages if message.get("role") == "assistant"]
    return {
        "response": next((text for text in reversed(said) if text), "" if "" in said else None),
        "tool_calls": calls_in(messages),
        "usage": document.get("usage"),
    }


def _ag_ui_join(events: Sequence[StreamEvent]) -> Any:
    run = _RunParts()
    for event in objects_of(events):
        run.add(event)
    return {"messages": run.messages(), "usage": run.usage}


def _ag_ui_usage(models: Any) -> dict[str, int] | None:
    """Return the sum of the tokens of all models of a run."""
    return total_usage(usage_of(model, ["inputTokens"], ["outputTokens"]) for model in list_of(models))


class _RunParts:
    """The messages and calls of a run, whose parts arrive in events."""

    def __init__(self) -> None:
        self.usage: dict[str, int] | None = None
        self._texts: dict[Any, list[str]] = {}
        self._calls: dict[Any, dict[str, Any]] = {}
        self._results: list[dict[str, Any]] = []
        self._snapshot: list[Any] = []
        self._has_ended = False
        # Chunks without an id continue the last message or call.
        self._last: dict[str, Any] = {}

    def add(self, event: Mapping[str, Any]) -> None:
        """Add one event."""
        kind = kind_of(event)
        if kind == "RUN_ERROR":
            raise reported(event.get("message") or event)
        if kind == "RUN_FINISHED":
            self._has_ended = True
            self.usage = _ag_ui_usage(event.get("usage"))
        if kind.startswith("TEXT_MESSAGE_"):
            self._texts.setdefault(self._id(event, "messageId"), []).append(str(event.get("delta") or ""))
        elif kind == "TOOL_CALL_RESULT":
            result = {key: event.get(key) for key in ("toolCallId", "content")}
            self._results.append({"role": "tool", **result})
        elif kind.startswith("TOOL_CALL_"):
            call = self._calls.setdefault(self._id(event, "toolCallId"), {"name": None, "pieces": []})
            call["name"] = call["name"] or event.get("toolCallName")
            call["pieces"].append(str(event.get("delta") or ""))
        elif kind == "MESSAGES_SNAPSHOT" and isinstance(event.get("messages"), list):
            self._snapshot = event["messages"]

    def messages(self) -> list[Any]:
        """Return the messages of the run: those of its events, else the last ones of its snapshot."""
        if not self._has_ended:
            raise broken_off("RUN_FINISHED")
        calls = [
            {"id": name, "type": "function", "function": {"name": call["name"], "arguments": "".join(call["pieces"])}}
            for name, call in self._calls.items()
        ]
        texts = [{"role": "assistant", "content": "".join(pieces)} for pieces in self._texts.values()]
        made: list[Any] = [*([{"role": "assistant", "toolCalls": calls}] if calls else []), *self._results, *texts]
        return made or self._new_in_snapshot()

    def _new_in_snapshot(self) -> list[Any]:
        messages = [item for item in self._snapshot if isinstance(item, dict)]
        starts = [number for number, item in enumerate(messages) if item.get("role") == "user"]
        return messages[starts[-1] + 1 :] if starts else messages

    def _id(self, event: Mapping[str, Any], key: str) -> Any:
        self._last[key] = event.get(key) or self._last.get(key, "")
        return str(self._last[key])


def _ag_ui_matches(document: Mapping[str, Any]) -> bool:
    return kind_of(document) in {"RUN_STARTED", "RUN_FINISHED", "TEXT_MESSAGE_START"}


AG_UI_SHAPE = Shape("ag-ui", _ag_ui_body, _ag_ui_read, _ag_ui_join, _ag_ui_matches)

_CONTENT = parse_path("content[*]")
_INPUT_TOKENS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
# The API requires a limit of output tokens.
_MAX_TOKENS = 4096


def _anthropic_body(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"messages": values["messages"], "max_tokens": _MAX_TOKENS}


def _anthropic_read(document: Any) -> dict[str, Any]:
    raise_error(document)
    blocks = _CONTENT.find(document, "shape anthropic-messages:")
    return {
        "response": text_of_blocks(blocks),
        "tool_calls": calls_in([{"role": "assistant", "content": blocks}]),
        "usage": usage_of(document.get("usage"), _INPUT_TOKENS, ["output_tokens"]),
    }


def _anthropic_join(events: Sequence[StreamEvent]) -> Any:
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


def _anthropic_matches(document: Mapping[str, Any]) -> bool:
    is_message = kind_of(document) == "message" and isinstance(document.get("content"), list)
    return is_message or kind_of(document) == "message_start"


ANTHROPIC_SHAPE = Shape("anthropic-messages", _anthropic_body, _anthropic_read, _anthropic_join, _anthropic_matches)

SHAPES: Mapping[str, Shape] = {
    shape.name: shape
    for shape in (
        openai_shapes.CHAT_SHAPE,
        openai_shapes.RESPONSES_SHAPE,
        ANTHROPIC_SHAPE,
        AG_UI_SHAPE,
    )
}


def probable_shape(document: Any) -> str | None:
    """Return the name of the shape that a reply, or an event of its stream, probably has."""
    if not isinstance(document, dict):
        return None
    return next((name for name, shape in SHAPES.items() if shape.matches(document)), None)
