"""Agents that are Python objects, called in a worker process with the user's interpreter."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from agenteval.agents.base import Remarks, Reply, Request, reply_from_json
from agenteval.agents.calls_elsewhere import CallsElsewhere
from agenteval.agents.framework import load_target
from agenteval.agents.reading import ReplyForm
from agenteval.agents.worker.pool import WorkerPool
from agenteval.core.errors import AgentError, ConfigError, agent_problem
from agenteval.suite.model import AgentSpec

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
