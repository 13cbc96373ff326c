"""Calls agents of other packages, registered as entry points of the group ``agenteval.agents``.

This file runs in the worker process under the user's Python (3.8 or newer) and needs nothing but the
standard library. All its functions run in one event loop, so that an agent can keep clients between calls.
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib.metadata
import inspect
import json
import sys
from typing import Any, Callable, Dict, List, Mapping, Tuple

from agenteval.agents.worker.references import BrokenError

GROUP = "agenteval.agents"
# The keys of a reply in the agent protocol.
_REPLY = ("response", "tool_calls", "retrieval_context", "usage", "metadata")
# Limit for ending a session or an agent, in seconds; after the caller's longer limit the process is killed.
_END_S = 4.0


class PluginError(Exception):
    """The agent kind does not exist or violates its contract."""


@dataclasses.dataclass(frozen=True)
class Request:
    """One turn; the fields of the agent protocol."""

    input: str
    case: str
    turn: int
    session: str
    history: List[Mapping[str, str]]
    files: List[str]
    config: Mapping[str, Any]
    context: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class AgentContext:
    """The definition of an agent, for its constructor.

    Attributes:
        directory: directory of the file that defines the agent; relative paths start here.
        config: the agent's ``config``.
        timeout_s: time limit of one turn, in seconds.
    """

    directory: str
    config: Mapping[str, Any]
    timeout_s: float


class Running:
    """An agent that the first call makes, and its sessions.

    Attributes:
        ends: the method that ends a session.
        closes: the method that closes the agent.
    """

    ends = "end"
    closes = "close"

    def __init__(self, definition: Mapping[str, Any]) -> None:
        self.definition = definition
        self.sessions: Dict[str, Any] = {}
        self._start: "asyncio.Task[Any] | None" = None

    async def make(self) -> Any:
        """Make the agent, and start it."""
        return await _started(self.definition)

    async def made(self) -> Any:
        """Return the agent; make it at the first call, and again after a failure."""
        if self._start is None or (self._start.done() and (self._start.cancelled() or self._start.exception())):
            self._start = asyncio.ensure_future(self.make())
        return await asyncio.shield(self._start)

    async def end(self, session: str) -> None:
        """End a session."""
        ended = self.sessions.pop(session, None)
        if ended is not None:
            await _awaited(getattr(ended, self.ends)())

    async def close(self) -> None:
        """Close the agent if it was made."""
        if self._start is not None and self._start.done() and not self._start.exception():
            await _awaited(getattr(self._start.result(), self.closes)())


_AGENTS: Dict[str, Running] = {}


def running(definition: Mapping[str, Any], kind: Callable[[Mapping[str, Any]], Running] = Running) -> Any:
    """Return the agent of a definition, which this process has once."""
    return _AGENTS.setdefault(_key(definition), kind(definition))


def _key(definition: Mapping[str, Any]) -> str:
    return json.dumps(definition, sort_keys=True)


async def start(definition: Mapping[str, Any]) -> None:
    """Create and start an agent."""
    await running(definition).made()


async def send(definition: Mapping[str, Any], session: str, request: Mapping[str, Any]) -> Any:
    """Send one turn to a session, which the first turn opens; return text, or a reply of the agent protocol."""
    plugin = running(definition)
    agent = await plugin.made()
    if session not in plugin.sessions:
        plugin.sessions[session] = agent.session()
    reply = await _awaited(plugin.sessions[session].send(Request(**request)))
    return reply if isinstance(reply, str) else _reply(reply)


async def end(definition: Mapping[str, Any], session: str) -> None:
    """End a session."""
    known = _AGENTS.get(_key(definition))
    if known is not None:
        await asyncio.wait_for(known.end(session), _END_S)


async def close(definition: Mapping[str, Any]) -> None:
    """Close an agent."""
    known = _AGENTS.get(_key(definition))
    if known is not None:
        await asyncio.wait_for(known.close(), _END_S)


async def _started(definition: Mapping[str, Any]) -> Any:
    kind = definition["kind"]
    cls, distribution = _load(kind)
    options = definition["options"]
    model = getattr(cls, "Options", None)
    context = AgentContext(definition["directory"], definition["config"], definition["timeout_s"])
    try:
        agent = cls(options if model is None else model(**options), context)
        await _awaited(agent.start())
    except (Exception, SystemExit) as error:
        # An agent may import its libraries only when it starts.
        failure = BrokenError if isinstance(error, ImportError) else PluginError
        raise failure(
            "kind %r of %s cannot start: %s: %s" % (kind, distribution, type(error).__name__, error)
        ) from error
    return agent


def _load(kind: str) -> Tuple[Any, str]:
    registered = _registered()
    found = [(entry, distribution) for entry, distribution in registered if entry.name == kind]
    if not found:
        names = ", ".join(sorted({entry.name for entry, _ in registered})) or "none"
        raise PluginError(
            "no distribution registers the kind %r for %s; registered: %s" % (kind, sys.executable, names)
        )
    if len(found) > 1:
        distributions = ", ".join(distribution for _, distribution in found)
        raise PluginError(
            "kind %r: several distributions register it (%s); uninstall all but one" % (kind, distributions)
        )
    entry, distribution = found[0]
    try:
        return entry.load(), distribution
    except (Exception, SystemExit) as error:
        raise BrokenError(
            "kind %r cannot be imported from %s: %s: %s" % (kind, distribution, type(error).__name__, error)
        ) from error


def _registered() -> List[Tuple[Any, str]]:
    found: Dict[str, List[Tuple[Any, str]]] = {}
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"] or "an unknown distribution"
        label = "%s %s" % (name, distribution.version)
        entries = [(entry, label) for entry in distribution.entry_points if entry.group == GROUP]
        # Of two distributions with the same name, Python imports the first on the path.
        found.setdefault(name.lower().replace("_", "-"), entries)
    return [item for entries in found.values() for item in entries]


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _reply(value: Any) -> Any:
    """Return a reply as JSON: a mapping unchanged, an object with ``response`` as its fields."""
    if not isinstance(value, Mapping) and hasattr(value, "response"):
        value = {name: getattr(value, name) for name in _REPLY if getattr(value, name, None) is not None}
    return _plain(value)


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_none=True)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
