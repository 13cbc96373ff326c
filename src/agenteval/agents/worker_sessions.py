"""Sessions of an agent that lives in a worker process."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from agenteval.agents.base import Reply, Request
from agenteval.agents.worker.pool import WorkerPool
from agenteval.core.errors import AgentError, ConfigError
from agenteval.suite.model import AgentSpec

# Limit for ending a session or closing the agent, in seconds.
_END_S = 5.0


class AgentInWorker:
    """An agent whose functions ``start``, ``send``, ``end`` and ``close`` are in a module that runs in the worker.

    Args:
        spec: the agent's definition.
        concurrency: maximum number of simultaneous turns.
        module: the module; its functions get the definition first.
        definition: what they get, as JSON.
    """

    def __init__(self, spec: AgentSpec, concurrency: int, module: str, definition: Mapping[str, Any]) -> None:
        self._workers = WorkerPool(spec, concurrency)
        self._module = module
        self._definition = definition

    def session(self) -> SessionInWorker:
        """Return a new session of the agent in the worker."""
        return SessionInWorker(self)

    async def send(self, session: str, request: Request) -> Reply:
        """Send one turn to a session."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close the agent, then end the worker processes."""
        await self.finish("close")
        await self._workers.close()

    async def finish(self, function: str, *arguments: Any) -> None:
        """Call a function that ends a session or the agent, if a worker runs; its errors are ignored."""
        if self._workers.is_running:
            with suppress(AgentError, ConfigError, TimeoutError):
                await asyncio.wait_for(self._call(function, *arguments), timeout=_END_S)

    async def _call(self, function: str, *arguments: Any) -> Any:
        return await self._workers.call(f"{self._module}:{function}", [self._definition, *arguments])


class SessionInWorker:
    """One conversation with a session of the agent in the worker."""

    def __init__(self, agent: AgentInWorker) -> None:
        self._agent = agent
        self._id = uuid.uuid4().hex

    async def send(self, request: Request) -> Reply:
        """Send one turn."""
        return await self._agent.send(self._id, request)

    async def end(self) -> None:
        """End the session in the worker."""
        await self._agent.finish("end", self._id)
