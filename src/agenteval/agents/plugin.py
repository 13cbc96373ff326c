"""An agent of a kind that another package registers; it runs in a worker process with the user's interpreter."""

from __future__ import annotations

import asyncio

from agenteval.agents.base import Reply, Request, reply_to
from agenteval.agents.worker_sessions import AgentInWorker
from agenteval.core.errors import AgentError, AgentImportError, ConfigError, Kind, UserCodeError, agent_problem
from agenteval.suite.model import DEFAULT_TURN_TIMEOUT_S, AgentSpec


class PluginAgent(AgentInWorker):
    """Loads the kind from the user's interpreter, and sends turns to its sessions in the worker."""

    def __init__(self, spec: AgentSpec, concurrency: int) -> None:
        self._spec = spec
        definition = {
            "kind": str(spec.target),
            "options": dict(spec.options["options"]),
            "config": dict(spec.config),
            "directory": spec.directory,
            "timeout_s": spec.limit_s,
        }
        super().__init__(spec, concurrency, "agenteval.agents.worker.plugins", definition)

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
            raise UserCodeError(agent_problem(self._spec.where, str(error), Kind.USER_CODE)) from None
        except AgentError as error:
            raise ConfigError(agent_problem(self._spec.where, str(error).removeprefix("PluginError: "))) from None
        except TimeoutError:
            message = f"kind {str(self._spec.target)!r} took longer than {limit_s:g} s to start"
            raise UserCodeError(agent_problem(self._spec.where, message, Kind.USER_CODE)) from None

    async def send(self, session: str, request: Request) -> Reply:
        """Send one turn to a session."""
        return reply_to(request, await self._call("send", session, request.to_json()))
