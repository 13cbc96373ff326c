"""The agent interface: an agent opens sessions, a session answers requests."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from pydantic import InstanceOf

from agenteval.agents.tool_calls import protocol_calls, raise_error, text_of_blocks
from agenteval.core.arguments import JsonObject
from agenteval.core.errors import AgentError, Problem
from agenteval.core.records import dataclass, field
from agenteval.results.case import MOST_USED, ToolCall, Usage
from agenteval.suite.forms import keys_of

if TYPE_CHECKING:
    from agenteval.suite.model import Case


#: What to do about an object without `response`, in the agent protocol.
FIX = "return the answer as `response`"
#: The error of a turn without an answer.
NO_ANSWER = 'the agent returned no answer (None or null); return a text, "" for an empty one'


@dataclass(frozen=True)
class Request:
    """One turn for an agent; ``to_json`` returns it in the published protocol.

    Attributes:
        files: absolute paths on this machine.
        file_texts: name and text of each file, for agents that cannot read files.
        expects_json: whether the turn expects a JSON object as the answer; not part of the protocol.
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
    expects_json: bool = False

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


@dataclass(frozen=True)
class Reply:
    """An agent's answer, or a tool's result.

    Agents that measure their latency set ``latency_ms``; it replaces the measured time. ``raised`` is the exception
    of a tool under test, if a case accepts it as an answer. A ``cached`` answer has no latency and no cost: a cache
    answered at least one of its model calls.
    """

    response: str
    tool_calls: tuple[InstanceOf[ToolCall], ...] = ()
    retrieval_context: tuple[str, ...] = ()
    usage: InstanceOf[Usage] | None = None
    metadata: JsonObject = field(default_factory=dict)
    latency_ms: float | None = None
    raised: str | None = None
    cached: bool = False


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


@dataclass(frozen=True)
class Remarks:
    """What an agent noticed in its replies.

    Attributes:
        texts: sentences for the report.
        mapping_of_calls: the configuration that finds the tool calls in the replies; ``None`` if replies without
            ``tool_calls`` did not contain any elsewhere.
    """

    texts: tuple[str, ...] = ()
    mapping_of_calls: str | None = None


@runtime_checkable
class RemarkingAgent(Protocol):
    """An agent that notices more in its replies than it returns."""

    def remarks(self) -> Remarks:
        """Return what it noticed so far."""
        ...


@runtime_checkable
class CheckedAgent(Protocol):
    """An agent whose start calls models, so that it is checked in another way if nothing may be called."""

    async def check(self) -> Sequence[Problem]:
        """Check what the start checks before it calls a model.

        Returns:
            What this machine lacks to run the agent.

        Raises:
            ConfigError: the definition cannot be used on any machine.
            UserCodeError: code of the user's environment cannot be loaded.
        """
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


class PlainAgent:
    """An agent that is its own session: it keeps nothing between turns, and holds nothing open."""

    async def start(self) -> None:
        """Do nothing."""

    def session(self) -> Self:
        """Return the agent."""
        return self

    async def end(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""


# Limits of one reply: values need up to a hundred times the memory of their text.
_MOST_VALUES = 100_000
#: The most values of a stream, and of a reply with its texts, which can be JSON again: arguments of calls are.
MOST_OF_STREAM = 1_000_000
_MOST_CALLS = 10_000
_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


def check_size(text: bytes, most: int = _MOST_VALUES) -> None:
    """Check the number of values in JSON, before values are made of it.

    Args:
        most: number of values outside of texts.

    Raises:
        AgentError: there are more than the limit, which the message names.
    """
    found = text.count(b",")
    if found + text.count(b"u002") > MOST_OF_STREAM:
        raise AgentError(f"the reply has more than {MOST_OF_STREAM:,} values, the limit of a reply with its texts")
    if found <= most:
        return
    # Texts are skipped one by one: without them, the text would be a list of millions of pieces for a moment.
    outside = at = 0
    for match in _TEXT.finditer(text):
        outside += text.count(b",", at, match.start())
        at = match.end()
        if outside > most:
            break
    else:
        outside += text.count(b",", at)
    if outside > most:
        raise AgentError(f"the reply has more than {most:,} values, the limit of a reply")


def read_json(text: str | bytes) -> Any:
    """Parse JSON that user code, a service or a recording sent, with or without a byte order mark.

    Raises:
        AgentError: it has more values than a reply may have.
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    check_size(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
    return json.loads(text.removeprefix("\ufeff") if isinstance(text, str) else text)


def reply_from_json(value: Any) -> Reply:
    """Parse a reply of the agent protocol.

    An object is a full reply and has a ``response``, which may be ``None`` beside tool calls. Anything else is the
    answer: text unchanged, other JSON as JSON text.

    Raises:
        AgentError: it contains an ``error`` or no answer, or a field has the wrong shape; the message names it.
    """
    if not isinstance(value, dict):
        return Reply(response=answer_text(value))
    raise_error(value)
    if "response" not in value:
        raise AgentError(without_response(value, FIX))
    known = {"response", "tool_calls", "retrieval_context", "usage", "metadata", "error"}
    metadata = value.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise AgentError(f"reply field 'metadata' must be an object, not {_kind(metadata)}")
    calls = _tool_calls(value.get("tool_calls"))
    return Reply(
        # Models often say nothing when they call tools.
        response="" if value["response"] is None and calls else answer_text(value["response"]),
        tool_calls=calls,
        retrieval_context=_passages(value.get("retrieval_context")),
        usage=_usage(value.get("usage")),
        metadata={**{key: item for key, item in value.items() if key not in known}, **metadata},
    )


def answer_text(value: Any) -> str:
    """Return an answer as text: the texts of the parts of a message together, anything else as `as_text`.

    Raises:
        AgentError: there is no answer (``None``), or `as_text` raises.
    """
    if value is None:
        raise AgentError(NO_ANSWER)
    if isinstance(value, list) and all(isinstance(item, str) or "type" in _fields(item) for item in value):
        text = text_of_blocks(value) if any(map(_fields, value)) else None
        return as_text(value if text is None else text)
    return as_text(value)


def _fields(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def as_text(value: Any) -> str:
    """Return a value as text: text unchanged, ``None`` empty, other JSON as JSON text; lone surrogates are replaced.

    Raises:
        AgentError: JSON cannot express it, or it is nested too deeply.
    """
    if value is None:
        return ""
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, allow_nan=False)
    except RecursionError:
        raise AgentError("the reply is nested too deeply") from None
    except (TypeError, ValueError) as error:
        raise AgentError(f"JSON cannot express the answer: {error}") from None
    # Lone surrogates cannot be encoded in files and requests.
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def without_response(value: Mapping[str, Any], fix: str) -> str:
    """Return the error of an object that is no reply."""
    return f"the reply is a JSON object without `response` (its keys: {keys_of(value) or 'none'}); {fix}"


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _tool_calls(value: Any) -> tuple[ToolCall, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise AgentError(f"reply field 'tool_calls' must be a list, not {_kind(value)}")
    if len(value) > _MOST_CALLS:
        raise AgentError(f"the reply has more than {_MOST_CALLS:,} tool calls, the limit of a reply")
    calls = []
    for index, item in enumerate(protocol_calls(value)):
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise AgentError(f"reply field 'tool_calls[{index}]' must be an object with a text 'name'")
        duration, error = item.get("duration_ms"), item.get("error")
        if duration is not None and (not is_number(duration) or abs(duration) > MOST_USED):
            raise AgentError(f"reply field 'tool_calls[{index}].duration_ms' must be a number")
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
    if not isinstance(value, str | list):
        raise AgentError(f"reply field 'retrieval_context' must be a list of texts, not {_kind(value)}")
    return (value,) if isinstance(value, str) else tuple(map(as_text, value))


# Names of the numbers of tokens in the APIs of models. Numbers of cached and of reasoning tokens are parts of these;
# those of Anthropic and Google are not, and are added.
_INPUT = ("input_tokens", "prompt_tokens", "inputTokens", "promptTokens", "prompt_token_count", "promptTokenCount")
_OUTPUT = (
    *("output_tokens", "completion_tokens", "outputTokens", "completionTokens"),
    *("candidates_token_count", "candidatesTokenCount"),
)
_BESIDE = {
    "input_tokens": ("cache_creation_input_tokens", "cache_read_input_tokens"),
    "candidates_token_count": ("thoughts_token_count",),
    "candidatesTokenCount": ("thoughtsTokenCount",),
}
_COST = ("cost_usd", "total_cost_usd", "cost", "total_cost")


def _usage(value: Any) -> Usage | None:
    """Return the tokens and the cost of a reply; of a list, the sums."""
    parts = value if isinstance(value, list) else [] if value is None else [value]
    total: dict[str, Any] = {}
    for part in parts:
        if not isinstance(part, dict):
            raise AgentError(f"reply field 'usage' must be an object, not {_kind(part)}")
        for key, names in (("input_tokens", _INPUT), ("output_tokens", _OUTPUT), ("cost_usd", _COST)):
            name = next((name for name in names if part.get(name) is not None), None)
            if name is not None:
                counts = [part[other] for other in (name, *_BESIDE.get(name, ())) if part.get(other) is not None]
                total[key] = total.get(key, 0) + sum(_used(name, count, key) for count in counts)
    return Usage(**total) if total else None


def _used(name: str, count: Any, key: str) -> Any:
    if key == "cost_usd":
        if not is_number(count) or not 0 <= count <= MOST_USED:
            raise AgentError(f"reply field 'usage.{name}' must be a number that is not negative, at most 10^15")
        return count
    if not is_number(count) or not 0 <= count <= MOST_USED or count != int(count):
        raise AgentError(f"reply field 'usage.{name}' must be a whole number of tokens, at most 10^15")
    return int(count)


def is_number(value: Any) -> bool:
    """Whether a JSON value is a number that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
