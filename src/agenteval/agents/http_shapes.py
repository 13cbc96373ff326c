"""The shapes of requests and replies by name; ``suite/agent_keys.py`` lists the same names for configurations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agenteval.agents.http_response import StreamEvent, objects_of
from agenteval.agents.tool_calls import calls_in, raise_error, reported, text_of_blocks
from agenteval.core.errors import TransientAgentError
from agenteval.core.records import dataclass
from agenteval.suite.forms import parse_path


@dataclass(frozen=True)
class Shape:
    """A published form of requests and replies.

    Attributes:
        name: value of ``shape`` in YAML.
        body: returns the request, without the keys that ``body`` of the agent adds; the argument is the values of
            placeholders.
        read: converts a complete reply to the agent protocol. It raises ``PathError`` if the reply has another form,
            and ``AgentError`` if the reply is an error.
        matches: whether a reply, or an event of its stream, probably has this form.
    """

    name: str
    body: Callable[[Mapping[str, Any]], dict[str, Any]]
    read: Callable[[Any], dict[str, Any]]
    join: Callable[[Sequence[StreamEvent]], Any]
    matches: Callable[[Mapping[str, Any]], bool]


def broken_off(last: str) -> TransientAgentError:
    """Return the error of a stream without its last event."""
    return TransientAgentError(f"the agent's stream ended without {last}")


def object_of(value: Any) -> dict[str, Any]:
    """Return a value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """Return a value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def kind_of(value: Mapping[str, Any]) -> str:
    """Return the type that an object names; empty without one."""
    kind = value.get("type")
    return kind if isinstance(kind, str) else ""


_MESSAGE = parse_path("choices[0].message")


def _chat_body(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"messages": values["messages"]}


def _chat_read(document: Any) -> dict[str, Any]:
    raise_error(document)
    message = _MESSAGE.find(document, "shape openai-chat:")
    message = {**object_of(message), "role": "assistant"}
    text = text_of_blocks(message.get("content"))
    return {
        "response": text or message.get("refusal") or text,
        "tool_calls": calls_in([message]),
        "usage": document.get("usage"),
    }


def _chat_join(events: Sequence[StreamEvent]) -> Any:
    texts: dict[str, list[str]] = {"content": [], "refusal": []}
    calls: dict[str, _PartialCall] = {}
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
            calls.setdefault(str(piece.get("index", position)), _PartialCall()).add(piece)
    if not has_ended:
        raise broken_off("a finish_reason")
    message = {
        **{name: "".join(pieces) if pieces else None for name, pieces in texts.items()},
        "tool_calls": [*map(_PartialCall.whole, calls.values())],
    }
    return {"choices": [{"message": message}], "usage": usage}


class _PartialCall:
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


def _chat_matches(document: Mapping[str, Any]) -> bool:
    return str(document.get("object") or "").startswith("chat.completion") or "choices" in document


CHAT_SHAPE = Shape("openai-chat", _chat_body, _chat_read, _chat_join, _chat_matches)

_OUTPUT = parse_path("output[*]")
_LAST = frozenset({"response.completed", "response.incomplete", "response.failed"})


def _responses_body(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"input": values["messages"]}


def _responses_read(document: Any) -> dict[str, Any]:
    raise_error(document)
    items = _OUTPUT.find(document, "shape openai-responses:")
    if document.get("status") == "failed":
        raise reported("the response failed")
    messages = [item for item in map(object_of, items) if kind_of(item) == "message"]
    texts = [text_of_blocks(message.get("content")) or _refusal(message.get("content")) for message in messages]
    return {
        "response": "\n\n".join(text for text in texts if text) if messages else None,
        "tool_calls": calls_in(items),
        "usage": document.get("usage"),
    }


def _refusal(content: Any) -> str:
    return "".join(str(block.get("refusal") or "") for block in map(object_of, list_of(content)))


def _responses_join(events: Sequence[StreamEvent]) -> Any:
    whole = None
    for event in objects_of(events):
        if kind_of(event) == "error":
            raise reported(event.get("error") or event)
        if kind_of(event) in _LAST:
            whole = event.get("response")
    if whole is None:
        raise broken_off("response.completed")
    return whole


def _responses_matches(document: Mapping[str, Any]) -> bool:
    return document.get("object") == "response" or kind_of(document).startswith("response.")


RESPONSES_SHAPE = Shape("openai-responses", _responses_body, _responses_read, _responses_join, _responses_matches)


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


class _RunParts:
    """The messages and calls of a run, whose parts arrive in events."""

    def __init__(self) -> None:
        self.usage: Any = None
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
            self.usage = event.get("usage")
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
        "usage": document.get("usage"),
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
        CHAT_SHAPE,
        RESPONSES_SHAPE,
        ANTHROPIC_SHAPE,
        AG_UI_SHAPE,
    )
}


def probable_shape(document: Any) -> str | None:
    """Return the name of the shape that a reply, or an event of its stream, probably has."""
    if not isinstance(document, dict):
        return None
    return next((name for name, shape in SHAPES.items() if shape.matches(document)), None)
