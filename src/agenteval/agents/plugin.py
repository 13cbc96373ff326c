"""Agents that live in a worker process: of other packages, and of HoloDeck's projects."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from agenteval.agents.base import Reply, Request, reply_from_json, reply_to
from agenteval.agents.worker.pool import WorkerPool
from agenteval.core.errors import (
    AgentError,
    AgentImportError,
    ConfigError,
    Kind,
    Problem,
    UserCodeError,
    agent_problem,
)
from agenteval.suite.agent_definitions import HolodeckProject
from agenteval.suite.formats.registry import holodeck_project
from agenteval.suite.model import DEFAULT_TURN_TIMEOUT_S, AgentSpec

# Limit for ending a session or closing the agent, in seconds.
_END_S = 5.0


class AgentInWorker:
    """An agent whose functions ``start``, ``send``, ``end`` and ``close`` are in a module that runs in the worker.

    Args:
        concurrency: maximum number of simultaneous turns.
        module: the module; its functions get the definition first.
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


# Limit for making the agent, in seconds: imports, and embeddings of all documents.
_START_S = 900.0
# How the worker reports an error that is not a mistake in the project.
_BROKEN = "RuntimeError: "


class HolodeckAgent(AgentInWorker):
    """Has HoloDeck make the agent of a project once, and opens a session of it for each conversation.

    Raises:
        ConfigError: the project cannot be read.
    """

    def __init__(self, spec: AgentSpec, concurrency: int) -> None:
        self._spec = spec
        # A suite's loader has read it; agenteval.yaml only names the file.
        given: HolodeckProject | None = spec.options.get("agent")
        project = given or holodeck_project(Path(str(spec.target)))
        with_variables = replace(spec, env={**project.variables, **spec.env})
        super().__init__(with_variables, concurrency, "agenteval.agents.worker.holodeck", project.to_json())

    async def start(self) -> None:
        """Make the agent, with the index of its documents.

        Raises:
            ConfigError: HoloDeck is missing in the interpreter, or refuses the project.
            UserCodeError: the documents cannot be indexed, or that takes too long.
        """
        await self._asked("start")

    async def check(self) -> Sequence[Problem]:
        """Let HoloDeck read the project, without an index of its documents, which asks a model.

        Returns:
            HoloDeck is missing in the interpreter.

        Raises:
            ConfigError: HoloDeck refuses the project.
            UserCodeError: HoloDeck cannot be imported.
        """
        missing = await self._asked("check")
        return () if missing is None else (agent_problem(self._spec.where, str(missing)),)

    async def send(self, session: str, request: Request) -> Reply:
        """Send one turn to a session."""
        return reply_from_json(await self._call("send", session, request.prompt, not request.history))

    async def _asked(self, function: str) -> Any:
        """Call a function that makes or checks the agent."""
        try:
            return await asyncio.wait_for(self._call(function), timeout=_START_S)
        except AgentImportError as error:
            raise UserCodeError(agent_problem(self._spec.where, str(error))) from None
        except AgentError as error:
            said = str(error)
            failure = UserCodeError if said.startswith(_BROKEN) else ConfigError
            raise failure(agent_problem(self._spec.where, said.removeprefix(_BROKEN))) from None
        except TimeoutError:
            message = f"HoloDeck took longer than {_START_S:g} s to make the agent"
            raise UserCodeError(agent_problem(self._spec.where, message)) from None
