"""Agents of HoloDeck projects, run by HoloDeck itself in a worker process with the user's interpreter."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agenteval.agents.base import Reply, Request, reply_from_json
from agenteval.agents.worker_sessions import AgentInWorker
from agenteval.core.errors import AgentError, AgentImportError, ConfigError, Problem, UserCodeError, agent_problem
from agenteval.suite.formats.registry import holodeck_project
from agenteval.suite.holodeck_project import HolodeckProject
from agenteval.suite.model import AgentSpec

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
