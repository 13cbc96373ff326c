"""Tools under test: called directly, with the context of a case as their arguments.

Without a context the prompt is the single argument. Whatever a tool returns is the answer, as JSON text where it is
no text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from agenteval.agents.base import Reply, Request, as_text
from agenteval.agents.command import Program, without_last_break
from agenteval.agents.framework import check_target
from agenteval.agents.http.agent import HttpService
from agenteval.agents.http.response import text_of
from agenteval.agents.worker.pool import WorkerPool
from agenteval.core.errors import AgentError, ToolRaisedError, TransientAgentError
from agenteval.suite.model import AgentSpec

_CALL = "agenteval.agents.worker.calls:call_tool"
# With these a shell says that it cannot run a command, or does not find it.
_NOT_RUN = frozenset({126, 127})
# Nothing there, wrong method, proxy, too slow, too large, wrong type, too often: nobody looked at the arguments.
_NOT_REFUSED = frozenset({404, 405, 406, 407, 408, 411, 413, 415, 429})


class Tool:
    """A tool as an agent: every request is one call."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def start(self) -> None:
        """Make sure that the tool is there."""
        await self._caller.start()

    def session(self) -> Tool:
        """Calls know nothing of each other."""
        return self

    async def send(self, request: Request) -> Reply:
        """Call the tool once."""
        return Reply(response=await self._caller.call(request.context, request.input or None))

    async def end(self) -> None:
        """Nothing is held between calls."""

    async def close(self) -> None:
        """Release what the tool holds."""
        await self._caller.close()


class Caller(Protocol):
    """A way to call a tool."""

    async def start(self) -> None:
        """Make sure that the tool is there.

        Raises:
            ConfigError: it is not.
        """
        ...

    async def call(self, context: Mapping[str, Any], prompt: str | None) -> str:
        """Call the tool with arguments by name, or without any with the prompt alone.

        Raises:
            ToolRaisedError: the tool raised an exception.
            AgentError: it could not be called.
        """
        ...

    async def close(self) -> None:
        """Release what it holds."""
        ...


class PythonCaller:
    """A Python callable, or a method of an object, in a worker process."""

    def __init__(self, spec: AgentSpec, concurrency: int) -> None:
        self._spec = spec
        self._workers = WorkerPool(spec, concurrency)
        method, instantiate = spec.options.get("method", "__call__"), bool(spec.options.get("instantiate"))
        self._target = [str(spec.target), method, instantiate]

    async def start(self) -> None:
        """Import it once, so that a wrong name shows before any case runs."""
        await check_target(self._workers, self._spec, self._target)

    async def call(self, context: Mapping[str, Any], prompt: str | None) -> str:
        """Call it in the worker."""
        result = await self._workers.call(_CALL, [*self._target, dict(context) or None, prompt])
        if "raised" in result:
            raise ToolRaisedError(result["raised"])
        return as_text(result["value"])

    async def close(self) -> None:
        """End the worker processes."""
        await self._workers.close()


class CommandCaller:
    """A program: the arguments as JSON on its standard input, the result on its standard output."""

    def __init__(self, spec: AgentSpec) -> None:
        self._program = Program(spec, "the tool's command")

    async def start(self) -> None:
        """Find the program."""
        self._program.find()

    async def call(self, context: Mapping[str, Any], prompt: str | None) -> str:
        """Run the program once; an exit status of its own choice is its refusal."""
        ended = await self._program.run(arguments(context, prompt))
        if ended.status < 0 and not ended.output:
            raise TransientAgentError(f"the tool's command {ended.failure}")
        if ended.status < 0 or ended.status in _NOT_RUN:
            raise AgentError(f"the tool's command {ended.failure}")
        if ended.status > 0:
            raise ToolRaisedError(f"the tool's command {ended.failure}")
        return _body(without_last_break(ended.output.decode("utf-8", "replace")))

    async def close(self) -> None:
        """Nothing outlives a call."""


class HttpCaller:
    """An address: the arguments are POSTed as JSON, the body of the response is the result."""

    def __init__(self, spec: AgentSpec, concurrency: int) -> None:
        self._service = HttpService(spec, concurrency, "the tool")

    async def start(self) -> None:
        """Make sure that it can be asked."""
        self._service.open()

    async def call(self, context: Mapping[str, Any], prompt: str | None) -> str:
        """POST once; a status of 4xx is the tool's refusal, but for those that concern how it is called."""
        response = await self._service.post(arguments(context, prompt))
        if response.is_success:
            return _body(text_of(response))
        refusal = self._service.refusal(response)
        refused = response.is_client_error and response.status not in _NOT_REFUSED
        raise ToolRaisedError(str(refusal)) if refused else refusal

    async def close(self) -> None:
        """Close the connections."""
        await self._service.close()


def arguments(context: Mapping[str, Any], prompt: str | None) -> Any:
    """What a tool that is no Python is sent: an object of arguments, or the prompt as a JSON text."""
    return dict(context) if context or prompt is None else prompt


def _body(text: str) -> str:
    """What a tool wrote: a JSON text is the text in it; everything else is taken as it comes."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, str) else text
