"""AG-UI, the protocol between agents and user interfaces: its text messages and tool calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agenteval.agents.http.shapes.base import (
    Shape,
    broken_off,
    kind_of,
    list_of,
    total_usage,
    usage_of,
)
from agenteval.agents.http.stream import Event, objects_of
from agenteval.agents.reply_parts import raise_error, reported, text_of_blocks
from agenteval.agents.tool_calls import calls_in
from agenteval.suite.json_path import parse_path

_MESSAGES = parse_path("messages[*]")


def _body(values: Mapping[str, Any]) -> dict[str, Any]:
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


def _read(document: Any) -> dict[str, Any]:
    raise_error(document)
    messages = [item for item in _MESSAGES.find(document, "shape ag-ui:") if isinstance(item, dict)]
    said = [text_of_blocks(message.get("content")) for message in messages if message.get("role") == "assistant"]
    return {
        "response": next((text for text in reversed(said) if text), "" if "" in said else None),
        "tool_calls": calls_in(messages),
        "usage": document.get("usage"),
    }


def _join(events: Sequence[Event]) -> Any:
    run = _Run()
    for event in objects_of(events):
        run.add(event)
    return {"messages": run.messages(), "usage": run.usage}


def _usage(models: Any) -> dict[str, int] | None:
    """Return the sum of the tokens of all models of a run."""
    return total_usage(usage_of(model, ["inputTokens"], ["outputTokens"]) for model in list_of(models))


class _Run:
    """The messages and calls of a run, whose parts arrive in events.

    Attributes:
        usage: the tokens of the run, if it tells them.
    """

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
            self.usage = _usage(event.get("usage"))
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


def _matches(document: Mapping[str, Any]) -> bool:
    return kind_of(document) in {"RUN_STARTED", "RUN_FINISHED", "TEXT_MESSAGE_START"}


SHAPE = Shape("ag-ui", _body, _read, _join, _matches)
