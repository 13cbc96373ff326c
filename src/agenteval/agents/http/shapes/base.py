"""The interface of a shape, and what the shapes share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agenteval.agents.http.stream import Event
from agenteval.core.errors import TransientAgentError


@dataclass(frozen=True, slots=True)
class Shape:
    """A published form of requests and replies.

    Attributes:
        name: value of ``shape`` in YAML.
        body: returns the request, without the keys that ``body`` of the agent adds; the argument is the values of
            placeholders.
        read: converts a complete reply to the agent protocol. It raises ``PathError`` if the reply has another form,
            and ``AgentError`` if the reply is an error.
        join: returns the complete reply of a stream's events.
        matches: whether a reply, or an event of its stream, probably has this form.
    """

    name: str
    body: Callable[[Mapping[str, Any]], dict[str, Any]]
    read: Callable[[Any], dict[str, Any]]
    join: Callable[[Sequence[Event]], Any]
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
