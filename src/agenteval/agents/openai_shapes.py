"""The interface of a shape, and the shapes of OpenAI: chat completions and responses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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


def usage_of(usage: Any, inputs: Iterable[str], outputs: Iterable[str]) -> dict[str, int] | None:
    """Return the numbers of tokens, each the sum of several fields; ``None`` without any."""
    counts = {"input_tokens": _sum(usage, inputs), "output_tokens": _sum(usage, outputs)}
    found = {name: count for name, count in counts.items() if count is not None}
    return found or None


def total_usage(usages: Iterable[dict[str, int] | None]) -> dict[str, int] | None:
    """Return the sums of numbers of tokens; ``None`` without any."""
    total: dict[str, int] = {}
    for usage in usages:
        for name, count in (usage or {}).items():
            total[name] = total.get(name, 0) + count
    return total or None


def _sum(usage: Any, names: Iterable[str]) -> int | None:
    values = [usage.get(name) for name in names] if isinstance(usage, dict) else []
    counts = [value for value in values if isinstance(value, int) and not isinstance(value, bool) and value >= 0]
    return sum(counts) if counts else None


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
        "usage": usage_of(document.get("usage"), ["prompt_tokens"], ["completion_tokens"]),
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
        "usage": usage_of(document.get("usage"), ["input_tokens"], ["output_tokens"]),
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
