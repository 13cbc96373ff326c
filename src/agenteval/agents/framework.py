"""An agent that a module of the repository makes with an agent framework."""

from __future__ import annotations

import asyncio
from typing import Any

from agenteval.agents.base import Reply, Request, reply_from_json
from agenteval.agents.worker.pool import WorkerPool
from agenteval.core.errors import AgentError, ConfigError, agent_problem
from agenteval.suite.model import DEFAULT_TURN_TIMEOUT_S, AgentSpec

_ASK = "agenteval.agents.worker.calls:ask"
_CHECK = "agenteval.agents.worker.calls:check"


class FrameworkAgent:
    """Calls the method of an object that its framework's description names, in a worker process."""

    def __init__(self, spec: AgentSpec, concurrency: int) -> None:
        self._spec = spec
        self._workers = WorkerPool(spec, concurrency)
        self._method = str(spec.options["method"])
        self._instantiate = bool(spec.options["instantiate"])

    async def start(self) -> None:
        """Import the object once, so that what is wrong with its module shows before any case runs."""
        await check_target(self._workers, self._spec, [str(self._spec.target), self._method, self._instantiate])

    def session(self) -> FrameworkAgent:
        """The object is shared; what it remembers between calls is its own affair."""
        return self

    async def send(self, request: Request) -> Reply:
        """Ask the agent once."""
        arguments = [
            str(self._spec.target),
            self._method,
            self._spec.options.get("prompt_argument"),
            self._instantiate,
            request.to_json(),
        ]
        return reply_from_json(await self._workers.call(_ASK, arguments))

    async def end(self) -> None:
        """Workers are shared."""

    async def close(self) -> None:
        """End the worker processes."""
        await self._workers.close()


async def check_target(workers: WorkerPool, spec: AgentSpec, arguments: list[Any]) -> None:
    """Import an object that a module defines, and find its method.

    Frameworks take long to import, so a short time limit for a turn does not hold here.

    Args:
        workers: where it will be called.
        spec: its definition.
        arguments: of ``agenteval.agents.worker.calls.check``.

    Raises:
        ConfigError: it is not there, or takes too long.
    """
    limit_s = max(spec.limit_s, DEFAULT_TURN_TIMEOUT_S)
    try:
        await asyncio.wait_for(workers.call(_CHECK, arguments), timeout=limit_s)
    except AgentError as error:
        raise ConfigError(agent_problem(spec.where, f"{spec.target}: {error}")) from None
    except TimeoutError:
        message = f"importing {spec.target} took longer than {limit_s:g} s"
        raise ConfigError(agent_problem(spec.where, message)) from None
