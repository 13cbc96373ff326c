"""The agent interface: an agent opens sessions, a session answers requests."""

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
    """One turn for an agent; ``to_json`` returns it in the published protocol.

    Attributes:
        files: absolute paths on this machine.
        file_texts: name and text of each file, for agents that cannot read files.
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
        """The files' texts followed by the input."""
        return "\n\n".join((*self.file_texts, self.input))

    def to_json(self) -> dict[str, Any]:
        """Return the request in the agent protocol."""
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
    """An agent's answer, or a tool's result.

    Agents that measure their latency set ``latency_ms``; it replaces the measured time. ``raised`` is the exception
    of a tool under test, if a case accepts it as an answer.
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
            AgentError: the agent crashed, or its reply cannot be read.
        """
        ...

    async def end(self) -> None:
        """Release the resources of this conversation."""
        ...


@runtime_checkable
class RecordedAgent(Protocol):
    """An agent with recorded answers."""

    def expect(self, cases: Sequence[Case]) -> tuple[str, ...]:
        """Look up the recorded answers of cases; call it after ``start``.

        Returns:
            Notes about the recording, for the report.
        """
        ...

    def iterations(self, case_id: str) -> int | None:
        """Return the number of recorded iterations of a case, at least 1; ``None`` if they are not recorded."""
        ...


class Agent(Protocol):
    """Something that can be evaluated."""

    async def start(self) -> None:
        """Check the agent's definition, before any case runs.

        Raises:
            ConfigError: a program, module or file of the definition is missing.
        """
        ...

    def session(self) -> Session:
        """Return a new conversation, independent of all others."""
        ...

    async def close(self) -> None:
        """Release processes and connections."""
        ...


def reply_from_json(value: Any) -> Reply:
    """Parse a reply of the agent protocol.

    An object with a ``response`` is a full reply. Anything else is the answer: text unchanged, other JSON as JSON
    text.

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
    """Return an answer as text: text unchanged, other JSON as JSON text; lone surrogates are replaced.

    Raises:
        AgentError: the answer is nested too deeply.
    """
    if value is None:
        return ""
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        raise AgentError("the reply is nested too deeply") from None
    # Lone surrogates cannot be encoded in files and requests.
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
