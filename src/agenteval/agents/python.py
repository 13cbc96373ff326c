"""Agents that are Python callables, called in a worker process with the user's interpreter."""

from __future__ import annotations

import asyncio

from agenteval.agents.base import Reply, Request, reply_from_json
from agenteval.agents.worker.pool import WorkerPool
from agenteval.core.errors import ConfigError, agent_problem
from agenteval.suite.model import AgentSpec


class PythonAgent:
    """Calls ``module:callable`` with the request as a dict; the callable returns text, a dict or an awaitable."""

    def __init__(self, spec: AgentSpec, concurrency: int) -> None:
        self._spec = spec
        self._target = str(spec.target)
        self._workers = WorkerPool(spec, concurrency)

    async def start(self) -> None:
        """Import the callable once, so that a wrong name is reported before any case runs."""
        try:
            await asyncio.wait_for(self._workers.load(self._target), timeout=self._spec.limit_s)
        except TimeoutError:
            raise ConfigError(
                agent_problem(
                    self._spec.where, f"importing {self._target!r} took longer than {self._spec.limit_s:g} s"
                )
            ) from None

    def session(self) -> PythonAgent:
        """Return the agent: each request names its session."""
        return self

    async def send(self, request: Request) -> Reply:
        """Call the agent once."""
        return reply_from_json(await self._workers.call(self._target, [request.to_json()]))

    async def end(self) -> None:
        """Do nothing: sessions share the workers."""

    async def close(self) -> None:
        """End the worker processes."""
        await self._workers.close()
