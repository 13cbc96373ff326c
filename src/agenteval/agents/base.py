"""What every agent is: something that opens sessions, which answer requests."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from agenteval.core.errors import AgentError
from agenteval.results.model import ToolCall, Usage

if TYPE_CHECKING:
    from agenteval.suite.model import Case


@dataclass(frozen=True, slots=True)
class Request:
    """One turn as it is sent to an agent; ``to_json`` is the published protocol.

    Attributes:
        files: absolute paths on this machine.
        file_texts: for each file its name and the text in it, for agents that read no files themselves.
    """

    input: str
    case: str
    turn: int
    session: str
    iteration: int = 0
    case_id: str = ""
    history: tuple[Mapping[str, str], ...] = ()
    files: tuple[str, ...] = ()
    file_texts: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)

    @property
    def prompt(self) -> str:
        """The input with the files' texts before it."""
        return "\n\n".join((*self.file_texts, self.input))

    def to_json(self) -> dict[str, Any]:
        """The request as agents receive it."""
        return {
            "input": self.input,
            "case": self.case,
            "turn": self.turn,
            "session": self.session,
            "history": [dict(message) for message in self.history],
            "files": list(self.files),
            "config": dict(self.config),
            "context": dict(self.context),
        }


@dataclass(frozen=True, slots=True)
class Reply:
    """What an agent answered, or a tool returned.

    ``latency_ms`` is set by agents that know better than our clock. ``raised`` is the exception with which a tool
    under test refused, where that is an answer.
    """

    response: str
    tool_calls: tuple[ToolCall, ...] = ()
    retrieval_context: tuple[str, ...] = ()
    usage: Usage | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    latency_ms: float | None = None
    raised: str | None = None


class Session(Protocol):
    """One conversation: the turns of one case in one iteration."""

    async def send(self, request: Request) -> Reply:
        """Answer one turn.

        Raises:
            AgentError: the agent crashed or its reply cannot be read.
        """
        ...

    async def end(self) -> None:
        """Release what only this conversation held."""
        ...


@runtime_checkable
class RecordedAgent(Protocol):
    """An agent whose answers are there before it is asked."""

    def expect(self, cases: Sequence[Case]) -> tuple[str, ...]:
        """Look up, once it is started, what it will be asked.

        Returns:
            What is worth saying about the recording.
        """
        ...

    def iterations(self, case_id: str) -> int | None:
        """How often an expected case was run, 1 where it was not; ``None`` where the recording is of no run."""
        ...


class Agent(Protocol):
    """Something that can be evaluated."""

    async def start(self) -> None:
        """Check, before anything runs, that the agent can exist.

        Raises:
            ConfigError: a program, module or file that it names is missing.
        """
        ...

    def session(self) -> Session:
        """A new conversation that shares nothing with any other."""
        ...

    async def close(self) -> None:
        """Release processes and connections."""
        ...


def reply_from_json(value: Any) -> Reply:
    """Read a reply of the agent protocol.

    An object with a ``response`` is a full reply; anything else is the answer itself: text as it is,
    other JSON as JSON text.

    Raises:
        AgentError: a field of a full reply has the wrong shape; the message names it.
    """
    if isinstance(value, str):
        return Reply(response=as_text(value))
    if not (isinstance(value, dict) and "response" in value):
        return Reply(response=as_text(value))
    known = {"response", "tool_calls", "retrieval_context", "usage", "metadata"}
    metadata = value.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise AgentError(f"reply field 'metadata' must be an object, not {_kind(metadata)}")
    extra = {key: item for key, item in value.items() if key not in known}
    return Reply(
        response=as_text(value["response"]),
        tool_calls=_tool_calls(value.get("tool_calls")),
        retrieval_context=_passages(value.get("retrieval_context")),
        usage=_usage(value.get("usage")),
        metadata={**extra, **metadata},
    )


def as_text(value: Any) -> str:
    """An answer as text: text as it is, other JSON as JSON text, without halves of characters.

    Raises:
        AgentError: it is nested too deeply.
    """
    if value is None:
        return ""
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        raise AgentError("the reply is nested too deeply") from None
    # Metrics, files and the next request take no halves of characters (lone surrogates).
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _tool_calls(value: Any) -> tuple[ToolCall, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise AgentError(f"reply field 'tool_calls' must be a list, not {_kind(value)}")
    calls = []
    for index, item in enumerate(value):
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise AgentError(f"reply field 'tool_calls[{index}]' must be an object with a text 'name'")
        duration = item.get("duration_ms")
        if duration is not None and not is_number(duration):
            raise AgentError(f"reply field 'tool_calls[{index}].duration_ms' must be a number")
        error = item.get("error")
        calls.append(
            ToolCall(
                name=item["name"],
                args=item.get("args"),
                result=item.get("result"),
                error=None if error is None else as_text(error),
                duration_ms=duration,
            )
        )
    return tuple(calls)


def _passages(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        raise AgentError(f"reply field 'retrieval_context' must be a list of texts, not {_kind(value)}")
    return tuple(as_text(item) for item in value)


def _usage(value: Any) -> Usage | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise AgentError(f"reply field 'usage' must be an object, not {_kind(value)}")
    tokens: dict[str, int | None] = {}
    for name in ("input_tokens", "output_tokens"):
        count = value.get(name)
        if count is not None and (not is_number(count) or count < 0 or count != int(count)):
            raise AgentError(f"reply field 'usage.{name}' must be a whole number of tokens")
        tokens[name] = None if count is None else int(count)
    cost = value.get("cost_usd")
    if cost is not None and (not is_number(cost) or cost < 0):
        raise AgentError("reply field 'usage.cost_usd' must be a number that is not negative")
    return Usage(cost_usd=cost, **tokens)


def is_number(value: Any) -> bool:
    """Whether a JSON value is a number that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
