"""Agents that a FluxLoop project names, called in a worker process as FluxLoop calls them."""

from __future__ import annotations

from typing import Any

from agenteval.agents.base import Reply, Request, reply_from_json
from agenteval.agents.framework import load_target
from agenteval.agents.worker.pool import WorkerPool
from agenteval.core.errors import AgentError, ConfigError, agent_problem
from agenteval.suite.fluxloop_agent import fluxloop_agent_of
from agenteval.suite.model import AgentSpec

_WORKER = "agenteval.agents.worker.fluxloop"


class FluxLoopAgent:
    """Calls the ``runner`` of a project; all cases share one instance, as in FluxLoop."""

    def __init__(self, spec: AgentSpec, concurrency: int) -> None:
        runner = fluxloop_agent_of(spec)
        self._spec = spec
        self._settings = runner.settings()
        self._workers = WorkerPool(spec, concurrency, runner.paths)

    async def start(self) -> None:
        """Import the object once, so that errors in its module appear before any case runs.

        Raises:
            ConfigError: the object does not exist, or it cannot be called.
            UserCodeError: its import fails or takes too long.
        """
        await load_target(self._workers, self._spec)
        try:
            await self._call("check", [])
        except AgentError as error:
            raise ConfigError(agent_problem(self._spec.where, str(error).removeprefix("TypeError: "))) from None

    def session(self) -> FluxLoopAgent:
        """Return the agent: sessions share the object and its state."""
        return self

    async def send(self, request: Request) -> Reply:
        """Call the agent once."""
        return reply_from_json(await self._call("answer", [request.to_json(), request.iteration]))

    async def end(self) -> None:
        """Do nothing: sessions share the workers."""

    async def close(self) -> None:
        """End the worker processes."""
        await self._workers.close()

    async def _call(self, function: str, arguments: list[Any]) -> Any:
        given = [self._settings, *arguments]
        return await self._workers.call(f"{_WORKER}:{function}", given, load=str(self._spec.target))
