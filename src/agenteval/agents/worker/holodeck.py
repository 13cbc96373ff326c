"""Runs the agents of HoloDeck projects by the ``holodeck-ai`` package of the user's environment.

This file runs in the worker process under the user's Python (3.8 or newer) and itself needs only the standard
library. All its functions run in one event loop, so that an agent keeps its index and its sessions between calls.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.metadata
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

PACKAGE = "holodeck-ai"
# Providers whose agents HoloDeck runs by the OpenAI Agents SDK, an extra of the package.
_WITH_SDK = ("openai", "azure_openai")
# HoloDeck 0.7.1 imports it under every Python, but requires it only under Python 3.10.
_UNDECLARED = ("exceptiongroup",)
# As HoloDeck's command line sets them before it imports anything.
_SETTINGS = {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "GRPC_VERBOSITY": "ERROR"}
# Limit for closing an agent, in seconds; after the caller's longer limit the process is killed.
_END_S = 4.0


class HolodeckError(Exception):
    """HoloDeck is missing, refuses the project, or its agent failed; the text is the whole message."""

    is_of_agenteval = True


class _Running:
    """An agent that HoloDeck has made, and its conversations."""

    def __init__(self, project: Mapping[str, Any]) -> None:
        self._project = project
        self._start: asyncio.Task[Any] | None = None
        self._sessions: dict[str, Any] = {}

    async def backend(self) -> Any:
        """Return HoloDeck's backend; the first call makes it, with the index of the project's documents."""
        if self._start is None or (self._start.done() and (self._start.cancelled() or self._start.exception())):
            self._start = asyncio.ensure_future(_backend(self._project))
        return await asyncio.shield(self._start)

    async def send(self, session: str, message: str, is_first: bool) -> Mapping[str, Any]:
        backend = await self.backend()
        if session not in self._sessions:
            if not is_first:
                raise HolodeckError(
                    "the session with the earlier turns is gone: its process ended; run the case again"
                )
            self._sessions[session] = await backend.create_session()
        try:
            result = await self._sessions[session].send(message)
        except Exception as error:
            raise HolodeckError(f"HoloDeck's agent failed: {type(error).__name__}: {error}") from error
        if result.is_error:
            raise HolodeckError(f"HoloDeck's agent failed: {result.error_reason or 'no reason given'}")
        return _reply(result)

    async def end(self, session: str) -> None:
        ended = self._sessions.pop(session, None)
        if ended is not None:
            await ended.close()

    async def close(self) -> None:
        if self._start is not None and self._start.done() and not self._start.exception():
            await self._start.result().teardown()


_AGENTS: dict[str, _Running] = {}


async def check(project: Mapping[str, Any]) -> str | None:
    """Check a project without its documents and models.

    Args:
        project: as for ``start``.

    Returns:
        Which package is missing, with the command that installs it.

    Raises:
        HolodeckError: the installed package is too old or refuses the project.
    """
    missing = _missing(project["agent"]["model"]["provider"])
    if missing is None:
        with _refusals(_imported(project)) as parts:
            _agent(parts, project)
    return missing


async def start(project: Mapping[str, Any]) -> None:
    """Make an agent, with the index of its documents.

    Args:
        project: ``agent``: the content of agent.yaml, ``config``: that of the configuration files, ``directory``.

    Raises:
        HolodeckError: the package is missing or refuses the project.
        RuntimeError: the documents cannot be indexed.
    """
    await _running(project).backend()


async def send(project: Mapping[str, Any], session: str, message: str, is_first: bool) -> Mapping[str, Any]:
    """Send one turn; the first one opens the session.

    Returns:
        A reply of the agent protocol.

    Raises:
        HolodeckError: the agent failed.
    """
    return await _running(project).send(session, message, is_first)


async def end(project: Mapping[str, Any], session: str) -> None:
    """End a session."""
    await asyncio.wait_for(_running(project).end(session), _END_S)


async def close(project: Mapping[str, Any]) -> None:
    """Close an agent."""
    await asyncio.wait_for(_running(project).close(), _END_S)


def _running(project: Mapping[str, Any]) -> _Running:
    key = json.dumps(project, sort_keys=True)
    if key not in _AGENTS:
        _AGENTS[key] = _Running(project)
    return _AGENTS[key]


async def _backend(project: Mapping[str, Any]) -> Any:
    missing = _missing(project["agent"]["model"]["provider"])
    if missing is not None:
        raise HolodeckError(missing)
    parts = _imported(project)
    try:
        with _refusals(parts):
            agent = _agent(parts, project)
            return await parts.selector.select(agent, tool_instances=None, mode="test")
    except parts.indexing_error as error:
        raise RuntimeError(f"HoloDeck cannot index the documents: {error}") from error


def _agent(parts: _Parts, project: Mapping[str, Any]) -> Any:
    """Return the project's agent as HoloDeck's model of it."""
    parts.base_directory.set(project["directory"])
    config = parts.config(**project["config"]) if project["config"] else None
    written = {key: value for key, value in project["agent"].items() if key in parts.agent.model_fields}
    return parts.agent(**parts.loader().merge_configs(written, config))


@contextmanager
def _refusals(parts: _Parts) -> Iterator[_Parts]:
    """Raise a ``HolodeckError`` if HoloDeck refuses the project."""
    try:
        yield parts
    except parts.indexing_error:
        raise
    except (parts.error, ValueError) as error:
        raise HolodeckError(f"HoloDeck refuses the project: {error}") from error


def _imported(project: Mapping[str, Any]) -> _Parts:
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    if not (project["agent"].get("observability") or {}).get("enabled"):
        # Else the SDK uploads its traces, which HoloDeck prevents only with observability.
        os.environ.setdefault("OPENAI_AGENTS_DISABLE_TRACING", "1")
    try:
        return _Parts()
    except ImportError as error:
        missing = "" if (error.name or "holodeck").startswith("holodeck") else str(error.name)
        fix = _install(missing) if missing else f"{PACKAGE} 0.7 or newer is needed"
        version = importlib.metadata.version(PACKAGE)
        raise HolodeckError(f"{PACKAGE} {version} in {sys.executable} cannot be used: {error}; {fix}") from error


class _Parts:
    """What is used of HoloDeck."""

    def __init__(self) -> None:
        self.base_directory = _part("holodeck.config.context", "agent_base_dir")
        self.loader = _part("holodeck.config.loader", "ConfigLoader")
        self.selector = _part("holodeck.lib.backends.selector", "BackendSelector")
        self.error = _part("holodeck.lib.errors", "HoloDeckError")
        self.indexing_error = _part("holodeck.lib.tool_initializer", "ToolInitializerError")
        self.agent = _part("holodeck.models.agent", "Agent")
        self.config = _part("holodeck.models.config", "GlobalConfig")


def _part(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name)
    except AttributeError as error:
        raise ImportError(f"{module} has no {name}") from error


def _missing(provider: str) -> str | None:
    """Return which packages are missing, with the command that installs them."""
    extra = "[openai-agents]" if provider in _WITH_SDK else ""
    needed = [PACKAGE, *(["openai-agents"] if extra else [])]
    missing = [name for name in needed if not _is_installed(name)]
    if not missing:
        return None
    names, fix = " and no ".join(missing), _install(f"'{PACKAGE}{extra}'", *_UNDECLARED)
    return f"HoloDeck runs this agent, and {sys.executable} has no {names}; {fix}"


def _install(*packages: str) -> str:
    return f"install it: {sys.executable} -m pip install {' '.join(packages)}"


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _reply(result: Any) -> Mapping[str, Any]:
    usage = result.token_usage
    read = usage.prompt_tokens + usage.cache_creation_tokens + usage.cache_read_tokens
    return {
        "response": result.response,
        "tool_calls": _calls(result.tool_calls, result.tool_results),
        # Without any, HoloDeck does not know them.
        "usage": {"input_tokens": read, "output_tokens": usage.completion_tokens} if usage.total_tokens else None,
        "metadata": {"steps": result.num_turns},
    }


def _calls(calls: list[Mapping[str, Any]], results: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return calls with their results, which have the same id or, without ids, the same place."""
    by_id = {result["call_id"]: result for result in results if result.get("call_id")}
    found: list[Mapping[str, Any]] = []
    for index, call in enumerate(calls):
        number = call.get("call_id")
        result = by_id.get(number) if number else results[index] if index < len(results) else None
        arguments = call.get("arguments", call.get("args"))
        found.append(
            {
                "name": str(call.get("name") or ""),
                "args": _plain(arguments),
                "result": None if result is None else _plain(result.get("result")),
                "error": "no result received" if result is None else None,
            }
        )
    return found


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str, skipkeys=True))
