"""An agent of a kind that another package registers; it runs in a worker process with the user's interpreter."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import suppress
from typing import Any

from agenteval.agents.base import Reply, Request, reply_to
from agenteval.agents.worker.pool import WorkerPool
from agenteval.core.errors import AgentError, AgentImportError, ConfigError, UserCodeError, agent_problem
from agenteval.suite.model import DEFAULT_TURN_TIMEOUT_S, AgentSpec

_WORKER = "agenteval.agents.worker.plugins"
#: Limit for ending a session or closing the agent, in seconds.
_END_S = 5.0


class PluginAgent:
    """Loads the kind from the user's interpreter, and sends turns to its sessions in the worker."""

    def __init__(self, spec: AgentSpec, concurrency: int) -> None:
        self._spec = spec
        self._workers = WorkerPool(spec, concurrency)
        self._definition = {
            "kind": str(spec.target),
            "options": dict(spec.options["options"]),
            "config": dict(spec.config),
            "directory": spec.directory,
            "timeout_s": spec.limit_s,
        }

    async def start(self) -> None:
        """Import the class, create the agent and start it.

        Raises:
            ConfigError: no package or several packages register the kind, or the agent cannot be started.
            UserCodeError: the kind cannot be imported, or its import and start take too long.
        """
        # Imports can take long, so a shorter time limit for turns does not apply.
        limit_s = max(self._spec.limit_s, DEFAULT_TURN_TIMEOUT_S)
        try:
            await asyncio.wait_for(self._call("start"), timeout=limit_s)
        except AgentImportError as error:
            raise UserCodeError(agent_problem(self._spec.where, str(error))) from None
        except AgentError as error:
            raise ConfigError(agent_problem(self._spec.where, str(error).removeprefix("PluginError: "))) from None
        except TimeoutError:
            message = f"kind {str(self._spec.target)!r} took longer than {limit_s:g} s to start"
            raise UserCodeError(agent_problem(self._spec.where, message)) from None

    def session(self) -> PluginSession:
        """Return a new session of the agent in the worker."""
        return PluginSession(self)

    async def close(self) -> None:
        """Close the agent, then end the worker processes."""
        await self.finish("close")
        await self._workers.close()

    async def send(self, session: str, request: Request) -> Reply:
        """Send one turn to a session."""
        return reply_to(request, await self._call("send", session, request.to_json()))

    async def finish(self, function: str, *arguments: Any) -> None:
        """Call a function that ends a session or the agent, if a worker runs; its errors are ignored."""
        if self._workers.is_running:
            with suppress(AgentError, ConfigError, TimeoutError):
                await asyncio.wait_for(self._call(function, *arguments), timeout=_END_S)

    async def _call(self, function: str, *arguments: Any) -> Any:
        return await self._workers.call(f"{_WORKER}:{function}", [self._definition, *arguments])


class PluginSession:
    """One conversation with a session of the agent in the worker."""

    def __init__(self, agent: PluginAgent) -> None:
        self._agent = agent
        self._id = uuid.uuid4().hex

    async def send(self, request: Request) -> Reply:
        """Send one turn."""
        return await self._agent.send(self._id, request)

    async def end(self) -> None:
        """End the session in the worker."""
        await self._agent.finish("end", self._id)
