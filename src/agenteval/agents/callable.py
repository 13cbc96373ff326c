"""An agent that is a function of the caller, called in this process."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import threading
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from pathlib import Path
from typing import Any

from agenteval.agents.base import Reply, Request, reply_from_json
from agenteval.core.errors import AgentError, ConfigError, agent_problem
from agenteval.suite.model import AgentSpec

#: Takes the text of a turn, or the whole request where its parameter is annotated with ``Request``.
AgentFunction = (
    Callable[[str], str | Reply]
    | Callable[[str], Awaitable[str | Reply]]
    | Callable[[Request], str | Reply]
    | Callable[[Request], Awaitable[str | Reply]]
)

KIND = "callable"


class CallableAgent:
    """Calls the function of a specification: an asynchronous one in the event loop, any other in a thread."""

    def __init__(self, spec: AgentSpec) -> None:
        self._spec = spec
        self._function = _function(spec)
        self._takes_request = False

    async def start(self) -> None:
        """Check that the function can be called with one argument."""
        try:
            self._takes_request = _takes_request(self._function)
        except TypeError as error:
            raise ConfigError(agent_problem(self._spec.where, f"{self._spec.target}: {error}")) from None

    def session(self) -> CallableAgent:
        """Return this agent: the ``session`` of each request tells conversations apart."""
        return self

    async def send(self, request: Request) -> Reply:
        """Call the function once.

        Raises:
            AgentError: the function raised, or returned something that is not a reply.
        """
        argument = request if self._takes_request else request.prompt
        try:
            found = await _called(self._function, argument)
        except AgentError:
            raise
        except (Exception, SystemExit) as error:
            # Also a TimeoutError of the function: it is not the time limit of the turn.
            raise AgentError(f"{type(error).__name__}: {error}") from error
        return found if isinstance(found, Reply) else _reply(found)

    async def end(self) -> None:
        """Do nothing: a function has no session."""

    async def close(self) -> None:
        """Do nothing: threads that still run end with the process."""


def callable_spec(function: AgentFunction, name: str = "") -> AgentSpec:
    """Return the specification of an agent that is a function.

    Args:
        function: the agent.
        name: how messages name it; its qualified name if not given.
    """
    called = getattr(function, "__qualname__", type(function).__qualname__)
    module = getattr(function, "__module__", type(function).__module__)
    target = name or f"{module}:{called}"
    return AgentSpec(kind=KIND, target=target, directory=str(Path.cwd()), where="agent", function=function)


def in_loop(function: AgentFunction, loop: asyncio.AbstractEventLoop) -> AgentFunction:
    """Return an asynchronous function that runs in a given event loop, where its clients and locks belong.

    Args:
        function: the agent; one that is not asynchronous is returned as it is.
        loop: of the caller; it runs in another thread.
    """
    if not _is_async(function):
        return function

    @functools.wraps(function, updated=())
    async def call(argument: Any) -> Any:
        work: Any = function(argument)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))

    return call


def _function(spec: AgentSpec) -> Callable[..., Any]:
    if spec.function is None:
        raise ConfigError(agent_problem(spec.where, f"an agent of kind {KIND!r} needs a function; set `function`"))
    return spec.function


def _takes_request(function: Callable[..., Any]) -> bool:
    """Whether the first parameter is annotated with ``Request``.

    Raises:
        TypeError: the function cannot be called with one argument.
    """
    try:
        signature = inspect.signature(function)
    except ValueError:
        # Some functions written in C have no signature.
        return False
    try:
        signature.bind("")
    except TypeError as error:
        raise TypeError(f"cannot be called with one argument: {error}") from None
    annotation = next(iter(signature.parameters.values())).annotation
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2].strip("'\"") == Request.__name__
    return annotation is Request


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


async def _called(function: Callable[..., Any], argument: str | Request) -> Any:
    found = function(argument) if _is_async(function) else await _in_thread(function, argument)
    return await found if inspect.isawaitable(found) else found


def _in_thread(function: Callable[..., Any], argument: str | Request) -> asyncio.Future[Any]:
    """Call a function in a thread of its own.

    A daemon thread: a function that never returns must not keep the process from ending, which the threads of an
    executor do.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = copy_context()

    def deliver(found: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(found)
        else:
            future.set_exception(error)

    def work() -> None:
        found, failure = None, None
        try:
            found = context.run(function, argument)
        except BaseException as error:  # noqa: BLE001 - whatever the function raises; a thread must not swallow it
            failure = AgentError(f"{type(error).__name__}: {error}")
            failure.__cause__ = error
        with contextlib.suppress(RuntimeError):
            # The loop is closed where the turn was given up.
            loop.call_soon_threadsafe(deliver, found, failure)

    threading.Thread(target=work, name=f"agent {function!r}"[:60], daemon=True).start()
    return future


def _reply(found: Any) -> Reply:
    if isinstance(found, str | dict):
        return reply_from_json(found)
    raise AgentError(f"the function returned {type(found).__name__}; it must return a text or a Reply")
