"""Agents in a worker process: Python objects, agents of frameworks, of other packages and of HoloDeck's projects."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from agenteval.agents.base import PlainAgent, Remarks, Reply, Request, reply_from_json
from agenteval.agents.reading import ReplyReader, checked_reply
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
from agenteval.suite.agent_definitions import HolodeckProject, fluxloop_agent_of
from agenteval.suite.model import DEFAULT_TURN_TIMEOUT_S, AgentSpec

_WORKER = "agenteval.agents.worker"
_METHOD_CHECK = f"{_WORKER}.calls:check"
# Limit for ending a session or closing the agent, in seconds.
_END_S = 5.0
# Limit for making the agent, in seconds: imports, and embeddings of all documents.
_START_S = 900.0
_LATE = f"HoloDeck took longer than {_START_S:g} s to make the agent"
# How the worker reports an error that is not a mistake in the project.
_BROKEN = "RuntimeError: "
_NO_HISTORY = (
    "the function gets only the input of a turn, so it does not know the earlier turns of a conversation; "
    "add a parameter `history`, or take the whole request as `request`"
)


class WorkerAgent(PlainAgent):
    """An agent in a worker process; its sessions share the object and its state.

    Args:
        module: the module of the worker that calls the object.
        given: the first arguments of all its functions.
        load: the object of the user that the worker imports before each call.
        paths: directories of the user's modules, before the directory of the definition.
    """

    def __init__(
        self,
        spec: AgentSpec,
        concurrency: int,
        module: str,
        given: Sequence[Any],
        *,
        load: str | None = None,
        paths: Sequence[str] = (),
    ) -> None:
        self._spec = spec
        self._module = module
        self._given = given
        self._load = load
        self._workers = WorkerPool(spec, concurrency, paths)

    async def start(self) -> None:
        """Import the object once, so that errors in its module appear before any case runs."""
        await checked_object(self._workers, self._spec, f"{_WORKER}.{self._module}:check", self._given)

    async def send(self, request: Request) -> Reply:
        """Send one turn."""
        raise NotImplementedError

    async def close(self) -> None:
        """End the worker processes."""
        await self._workers.close()

    async def call(self, function: str, *arguments: Any) -> Any:
        """Call a function of the worker's module."""
        target = f"{_WORKER}.{self._module}:{function}"
        return await self._workers.call(target, [*self._given, *arguments], load=self._load)

    async def finish(self, function: str, *arguments: Any) -> None:
        """Call a function that ends a session or the agent, if a worker runs; its errors are ignored."""
        if self._workers.is_running:
            with suppress(AgentError, ConfigError, TimeoutError):
                await asyncio.wait_for(self.call(function, *arguments), timeout=_END_S)


class WorkerSession:
    """One conversation of an agent, which the worker keeps by its session until it ends."""

    def __init__(self, agent: WorkerAgent) -> None:
        self._agent = agent
        self._name: str | None = None

    async def send(self, request: Request) -> Reply:
        """Send one turn."""
        self._name = request.session
        return await self._agent.send(request)

    async def end(self) -> None:
        """Release the session in the worker."""
        if self._name is not None:
            await self._agent.finish("end", self._name)


async def checked_object(workers: WorkerPool, spec: AgentSpec, check: str, arguments: Sequence[Any]) -> Any:
    """Import the object that a definition names, and return the result of its check.

    Frameworks take long to import, so a turn's time limit below the default does not apply.

    Args:
        check: the function of the worker that checks whether the object can be asked.
    """
    limit_s = max(spec.limit_s, DEFAULT_TURN_TIMEOUT_S)
    try:
        await asyncio.wait_for(workers.load(str(spec.target)), timeout=limit_s)
    except TimeoutError:
        message = f"importing {str(spec.target)!r} took longer than {limit_s:g} s"
        raise UserCodeError(agent_problem(spec.where, message, Kind.USER_CODE)) from None
    try:
        return await workers.call(check, [*arguments])
    except AgentError as error:
        # The objects of AgentCI's targets are named by their suites, which the place does not show.
        named = f"{spec.target}: {error}" if check == _METHOD_CHECK else str(error).removeprefix("TypeError: ")
        raise ConfigError(agent_problem(spec.where, named)) from None


class FrameworkAgent(WorkerAgent):
    """Calls a method of a module's object; the framework's description names the method."""

    def __init__(self, spec: AgentSpec, concurrency: int) -> None:
        given = [str(spec.target), str(spec.options["method"]), bool(spec.options["instantiate"])]
        super().__init__(spec, concurrency, "calls", given, load=str(spec.target))

    async def send(self, request: Request) -> Reply:
        """Call the agent once."""
        prompt = self._spec.options.get("prompt_argument")
        return reply_from_json(await self.call("ask", prompt, request.to_json()))


class FluxLoopAgent(WorkerAgent):
    """Calls the ``runner`` of a project; all cases share one instance, as in FluxLoop."""

    def __init__(self, spec: AgentSpec, concurrency: int) -> None:
        runner = fluxloop_agent_of(spec)
        super().__init__(
            spec, concurrency, "fluxloop", [runner.settings()], load=str(spec.target), paths=runner.paths
        )

    async def send(self, request: Request) -> Reply:
        """Call the agent once."""
        return reply_from_json(await self.call("answer", request.to_json(), request.iteration))


class PythonAgent(WorkerAgent):
    """Asks a function, a class, an object or a framework's agent that a user module defines."""

    def __init__(self, spec: AgentSpec, concurrency: int) -> None:
        super().__init__(spec, concurrency, "targets", [str(spec.target)], load=str(spec.target))
        self._reader = ReplyReader(spec.options)
        self._takes_history = True
        self._is_class = False

    async def start(self) -> None:
        """Import the object."""
        found = await checked_object(self._workers, self._spec, f"{_WORKER}.targets:check", self._given)
        self._takes_history, self._is_class = found["takes_history"], found["is_class"]

    def session(self) -> Any:
        """Return a new conversation if the object is a class, which has an instance for each."""
        return WorkerSession(self) if self._is_class else self

    def remarks(self) -> Remarks:
        """Return remarks about the results, and about turns without their history."""
        return self._reader.remarks(self._spec.where)

    async def send(self, request: Request) -> Reply:
        """Ask the object once."""
        if request.history and not self._takes_history:
            self._reader.notes[_NO_HISTORY] = None
        found = await self.call("answer", request.to_json(), self._reader.paths is not None)
        reply = self._reader.read([found.pop("value")], request)
        # The parts that a framework's result contains beside its answer, unless paths found them.
        beside = reply_from_json({"response": "", **found})
        return replace(reply, tool_calls=reply.tool_calls or beside.tool_calls, usage=reply.usage or beside.usage)


class SessionAgent(WorkerAgent):
    """An agent that the worker makes once, and that has a session for each conversation."""

    def session(self) -> Any:
        """Return a new conversation."""
        return WorkerSession(self)

    async def close(self) -> None:
        """Close the agent, then end the worker processes."""
        await self.finish("close")
        await super().close()

    async def made(self, function: str, limit_s: float, late: str) -> Any:
        """Call a function that makes or checks the agent."""
        where = self._spec.where
        try:
            return await asyncio.wait_for(self.call(function), timeout=limit_s)
        except AgentImportError as error:
            raise UserCodeError(agent_problem(where, str(error), Kind.USER_CODE)) from None
        except AgentError as error:
            said = str(error)
            failure = UserCodeError if said.startswith(_BROKEN) else ConfigError
            raise failure(agent_problem(where, said.removeprefix(_BROKEN).removeprefix("PluginError: "))) from None
        except TimeoutError:
            raise UserCodeError(agent_problem(where, late, Kind.USER_CODE)) from None


class PluginAgent(SessionAgent):
    """Loads the kind from the user's interpreter, and sends turns to its sessions in the worker."""

    def __init__(self, spec: AgentSpec, concurrency: int) -> None:
        definition = {
            "kind": str(spec.target),
            "options": dict(spec.options["options"]),
            "config": dict(spec.config),
            "directory": spec.directory,
            "timeout_s": spec.limit_s,
        }
        super().__init__(spec, concurrency, "plugins", [definition])

    async def start(self) -> None:
        """Import the class, create the agent and start it."""
        # Imports can take long, so a shorter time limit for turns does not apply.
        limit_s = max(self._spec.limit_s, DEFAULT_TURN_TIMEOUT_S)
        await self.made("start", limit_s, f"kind {str(self._spec.target)!r} took longer than {limit_s:g} s to start")

    async def send(self, request: Request) -> Reply:
        """Send one turn."""
        return checked_reply(await self.call("send", request.session, request.to_json()), request)


class HolodeckAgent(SessionAgent):
    """Has HoloDeck make the agent of a project once, and opens a session of it for each conversation."""

    def __init__(self, spec: AgentSpec, concurrency: int) -> None:
        # A suite's loader has read it; agenteval.yaml only names the file.
        project: HolodeckProject | None = spec.options.get("agent")
        if project is None:
            from agenteval.suite.formats.registry import holodeck_project

            project = holodeck_project(Path(str(spec.target)))
        with_variables = replace(spec, env={**project.variables, **spec.env})
        super().__init__(with_variables, concurrency, "holodeck", [project.to_json()])

    async def start(self) -> None:
        """Make the agent, with the index of its documents."""
        await self.made("start", _START_S, _LATE)

    async def check(self) -> Sequence[Problem]:
        """Let HoloDeck read the project, without an index of its documents, which asks a model.

        Returns:
            HoloDeck is missing in the interpreter.
        """
        missing = await self.made("check", _START_S, _LATE)
        return () if missing is None else (agent_problem(self._spec.where, str(missing)),)

    async def send(self, request: Request) -> Reply:
        """Send one turn."""
        return reply_from_json(await self.call("send", request.session, request.prompt, not request.history))
