"""Agents that a module of the repository creates with an agent framework."""

from __future__ import annotations

import asyncio
from typing import Any

from agenteval.agents.base import Reply, Request, reply_from_json
from agenteval.agents.worker.pool import WorkerPool
from agenteval.core.errors import AgentError, ConfigError, Kind, UserCodeError, agent_problem
from agenteval.suite.model import DEFAULT_TURN_TIMEOUT_S, AgentSpec

_ASK = "agenteval.agents.worker.calls:ask"
_CHECK = "agenteval.agents.worker.calls:check"


class FrameworkAgent:
    """Calls a method of a module's object in a worker process; the framework's description names the method."""

    def __init__(self, spec: AgentSpec, concurrency: int) -> None:
        self._spec = spec
        self._workers = WorkerPool(spec, concurrency)
        self._method = str(spec.options["method"])
        self._instantiate = bool(spec.options["instantiate"])

    async def start(self) -> None:
        """Import the object once, so that errors in its module appear before any case runs."""
        await check_target(self._workers, self._spec, [str(self._spec.target), self._method, self._instantiate])

    def session(self) -> FrameworkAgent:
        """Return the agent: sessions share the object and its state."""
        return self

    async def send(self, request: Request) -> Reply:
        """Call the agent once."""
        arguments = [
            str(self._spec.target),
            self._method,
            self._spec.options.get("prompt_argument"),
            self._instantiate,
            request.to_json(),
        ]
        return reply_from_json(await self._workers.call(_ASK, arguments, load=str(self._spec.target)))

    async def end(self) -> None:
        """Do nothing: sessions share the workers."""

    async def close(self) -> None:
        """End the worker processes."""
        await self._workers.close()


async def check_target(workers: WorkerPool, spec: AgentSpec, arguments: list[Any]) -> None:
    """Import an object that a module defines, and find its method.

    Args:
        workers: the processes that import it.
        spec: the agent's definition.
        arguments: the arguments of ``agenteval.agents.worker.calls.check``.

    Raises:
        ConfigError: the object or method is missing.
        UserCodeError: the import fails or takes too long.
    """
    await load_target(workers, spec)
    try:
        await workers.call(_CHECK, arguments)
    except AgentError as error:
        raise ConfigError(agent_problem(spec.where, f"{spec.target}: {error}")) from None


async def load_target(workers: WorkerPool, spec: AgentSpec) -> None:
    """Import the object that an agent's definition names.

    Frameworks take long to import, so a turn's time limit below the default does not apply.

    Raises:
        ConfigError: the object is missing.
        UserCodeError: the import fails or takes too long.
    """
    limit_s = max(spec.limit_s, DEFAULT_TURN_TIMEOUT_S)
    try:
        await asyncio.wait_for(workers.load(str(spec.target)), timeout=limit_s)
    except TimeoutError:
        message = f"importing {str(spec.target)!r} took longer than {limit_s:g} s"
        raise UserCodeError(agent_problem(spec.where, message, Kind.USER_CODE)) from None
