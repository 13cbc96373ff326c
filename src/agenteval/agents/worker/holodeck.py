"""Runs the agents of HoloDeck projects by the ``holodeck-ai`` package of the user's environment.

This file runs in the worker process under the user's Python (3.8 or newer) and itself needs only the standard
library. All its functions run in one event loop, so that an agent keeps its index and its sessions between calls.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from agenteval.agents.worker.plugins import Running, close, end, running

__all__ = ["check", "close", "end", "send", "start"]

PACKAGE = "holodeck-ai"
# Providers whose agents HoloDeck runs by the OpenAI Agents SDK, an extra of the package.
_WITH_SDK = ("openai", "azure_openai")
# HoloDeck 0.7.1 imports it under every Python, but requires it only under Python 3.10.
_UNDECLARED = ("exceptiongroup",)
# As HoloDeck's command line sets them before it imports anything.
_SETTINGS = {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "GRPC_VERBOSITY": "ERROR"}


class HolodeckError(Exception):
    """HoloDeck is missing, refuses the project, or its agent failed; the text is the whole message."""

    is_of_agenteval = True


class _Project(Running):
    """HoloDeck's backend of a project, with the index of its documents, and its conversations."""

    ends = "close"
    closes = "teardown"

    async def make(self) -> Any:
        return await _backend(self.definition)


async def check(project: Mapping[str, Any]) -> str | None:
    """Check a project without its documents and models.

    Args:
        project: as for ``start``.

    Returns:
        Which package is missing, with the command that installs it.
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
    """
    await running(project, _Project).made()


async def send(project: Mapping[str, Any], session: str, message: str, is_first: bool) -> Mapping[str, Any]:
    """Send one turn; the first one opens the session.

    Returns:
        A reply of the agent protocol.
    """
    made = running(project, _Project)
    backend = await made.made()
    if session not in made.sessions:
        if not is_first:
            raise HolodeckError("the session with the earlier turns is gone: its process ended; run the case again")
        made.sessions[session] = await backend.create_session()
    try:
        result = await made.sessions[session].send(message)
    except Exception as error:
        raise HolodeckError(f"HoloDeck's agent failed: {type(error).__name__}: {error}") from error
    if result.is_error:
        raise HolodeckError(f"HoloDeck's agent failed: {result.error_reason or 'no reason given'}")
    return _reply(result)


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
    parts.base_directory.set(project["directory"])
    config = parts.config(**project["config"]) if project["config"] else None
    written = {key: value for key, value in project["agent"].items() if key in parts.agent.model_fields}
    return parts.agent(**parts.loader().merge_configs(written, config))


@contextmanager
def _refusals(parts: _Parts) -> Iterator[_Parts]:
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
