"""The shapes of requests and replies by name; ``suite/agent_keys.py`` lists the same names for configurations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agenteval.agents import openai_shapes
from agenteval.agents.http_response import StreamEvent, json_of, objects_of
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

_OUTPUT = parse_path("output")
_ANSWERS = ("output", "answer", "response", "result", "text")
_OF_MODEL = frozenset({"ai", "AIMessageChunk", "assistant"})
_OF_USER = frozenset({"human", "user"})


def _langserve_body(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"input": values["input"]}


def _langserve_read(document: Any) -> dict[str, Any]:
    raise_error(document)
    output = _OUTPUT.find(document, "shape langserve:")
    messages = list(_messages(output))
    return {
        "response": _answer(output, messages),
        "tool_calls": calls_in([*messages, *_steps(output)]),
        "usage": _langserve_usage(messages),
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


def _langserve_usage(messages: Iterable[Mapping[str, Any]]) -> dict[str, int] | None:
    return total_usage(usage_of(item.get("usage_metadata"), ["input_tokens"], ["output_tokens"]) for item in messages)


def _langserve_join(events: Sequence[StreamEvent]) -> Any:
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
        "usage_metadata": _langserve_usage([{"usage_metadata": one} for one in usage]),
    }


def _is_update(chunk: Mapping[str, Any]) -> bool:
    """Return whether a chunk contains new messages by node of a graph."""
    nodes = list(chunk.values())
    return bool(nodes) and all(isinstance(node, dict) and isinstance(node.get("messages"), list) for node in nodes)


def _langserve_matches(document: Mapping[str, Any]) -> bool:
    metadata = document.get("metadata")
    return "output" in document and isinstance(metadata, dict) and "run_id" in metadata


LANGSERVE_SHAPE = Shape("langserve", _langserve_body, _langserve_read, _langserve_join, _langserve_matches)

SHAPES: Mapping[str, Shape] = {
    shape.name: shape
    for shape in (
        openai_shapes.CHAT_SHAPE,
        openai_shapes.RESPONSES_SHAPE,
        ANTHROPIC_SHAPE,
        LANGSERVE_SHAPE,
        AG_UI_SHAPE,
    )
}


def probable_shape(document: Any) -> str | None:
    """Return the name of the shape that a reply, or an event of its stream, probably has."""
    if not isinstance(document, dict):
        return None
    return next((name for name, shape in SHAPES.items() if shape.matches(document)), None)
