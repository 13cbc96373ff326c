"""Agents that are Python objects or belong to a framework, called in a worker process."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

from agenteval.agents.base import Remarks, Reply, Request, reply_from_json
from agenteval.agents.reading import ReplyForm
from agenteval.agents.tool_calls import CallsElsewhere
from agenteval.agents.worker.pool import WorkerPool
from agenteval.core.errors import AgentError, ConfigError, Kind, UserCodeError, agent_problem
from agenteval.suite.agent_definitions import fluxloop_agent_of
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


_TARGETS = "agenteval.agents.worker.targets"
_NO_HISTORY = (
    "the function gets only the input of a turn, so it does not know the earlier turns of a conversation; "
    "add a parameter `history`, or take the whole request as `request`"
)


class PythonAgent:
    """Asks a function, a class, an object or a framework's agent that a user module defines."""

    def __init__(self, spec: AgentSpec, concurrency: int) -> None:
        self._spec = spec
        self._target = str(spec.target)
        self._workers = WorkerPool(spec, concurrency)
        self._form = ReplyForm.of(spec.options)
        self._takes_history = True
        self._is_class = False
        self._remarks: dict[str, None] = {}
        self._calls = CallsElsewhere()

    async def start(self) -> None:
        """Import the object once, so that a wrong name is reported before any case runs.

        Raises:
            ConfigError: the object does not exist, or it cannot be asked.
            UserCodeError: its import fails or takes too long.
        """
        await load_target(self._workers, self._spec)
        try:
            found = await self._call("check", [self._target])
        except AgentError as error:
            raise ConfigError(agent_problem(self._spec.where, str(error).removeprefix("TypeError: "))) from None
        self._takes_history, self._is_class = found["takes_history"], found["is_class"]

    def session(self) -> PythonSession:
        """Return a new conversation; each request names its session."""
        return PythonSession(self)

    def remarks(self) -> Remarks:
        """Return remarks about the results' tool calls, and about turns without their history."""
        texts = tuple(str(agent_problem(self._spec.where, remark)) for remark in self._remarks)
        return Remarks(texts, self._calls.mapping)

    async def send(self, request: Request) -> Reply:
        """Ask the object once."""
        if request.history and not self._takes_history:
            self._remarks[_NO_HISTORY] = None
        found = await self._call("answer", [self._target, request.to_json(), self._form.paths is not None])
        value = found.pop("value")
        reply = self._form.read([value], request)
        # The parts that a framework's result contains beside its answer, unless paths found them.
        beside = reply_from_json({"response": "", **found})
        reply = replace(reply, tool_calls=reply.tool_calls or beside.tool_calls, usage=reply.usage or beside.usage)
        if not reply.tool_calls:
            self._calls.look_in([value])
        return reply

    async def forget(self, session: str) -> None:
        """Release what the worker keeps for a conversation."""
        if self._is_class and self._workers.is_running:
            with suppress(AgentError):
                await self._call("end", [self._target, session])

    async def close(self) -> None:
        """End the worker processes."""
        await self._workers.close()

    async def _call(self, function: str, arguments: list[Any]) -> Any:
        return await self._workers.call(f"{_TARGETS}:{function}", arguments, load=self._target)


class PythonSession:
    """One conversation; a class under test has an instance for each."""

    def __init__(self, agent: PythonAgent) -> None:
        self._agent = agent
        self._name: str | None = None

    async def send(self, request: Request) -> Reply:
        """Ask the object once."""
        self._name = request.session
        return await self._agent.send(request)

    async def end(self) -> None:
        """Release the instance."""
        if self._name is not None:
            await self._agent.forget(self._name)


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
