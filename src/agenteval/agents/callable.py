"""An agent that is a function of the caller; it is called in this process."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, cast

from agenteval.agents.base import PlainAgent, Reply, Request
from agenteval.agents.reading import checked_reply
from agenteval.core.errors import AgentError, AgentEvalError, ConfigError, agent_problem
from agenteval.core.runtime import contained, in_thread
from agenteval.core.text import working_directory
from agenteval.suite.model import AgentSpec

#: A function that takes the text of a turn, or the whole request if its parameter is annotated with ``Request``.
AgentFunction = (
    Callable[[str], str | Reply]
    | Callable[[str], Awaitable[str | Reply]]
    | Callable[[Request], str | Reply]
    | Callable[[Request], Awaitable[str | Reply]]
)

KIND = "callable"


class CallableAgent(PlainAgent):
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

    async def send(self, request: Request) -> Reply:
        """Call the function once."""
        argument = request if self._takes_request else request.prompt
        try:
            found = await _called(self._function, argument)
        except AgentError:
            raise
        except AgentEvalError as error:
            ended = isinstance(error.__cause__, asyncio.CancelledError)
            raise AgentError("the agent raised CancelledError" if ended else str(error)) from error
        except Exception as error:
            # A TimeoutError of the function is caught here as well; it is not the time limit of the turn.
            raise AgentError(f"{type(error).__name__}: {error}") from error
        return checked_reply(found, request)


def callable_spec(function: AgentFunction, name: str = "") -> AgentSpec:
    """Return the specification of an agent that is a function.

    Args:
        name: name of the agent in messages; by default the function's qualified name.
    """
    target = name or f"{_attribute(function, '__module__')}:{_attribute(function, '__qualname__')}"
    return AgentSpec(kind=KIND, target=target, directory=str(working_directory()), where="agent", function=function)


def _attribute(function: AgentFunction, name: str) -> str:
    try:
        return str(getattr(function, name))
    except Exception:  # noqa: BLE001 - objects of the caller can define `__getattr__`
        return str(getattr(type(function), name))


def in_loop(function: AgentFunction, loop: asyncio.AbstractEventLoop) -> AgentFunction:
    """Return an asynchronous function that runs in a given event loop, to which its clients and locks belong.

    Args:
        function: the agent; a function that is not asynchronous is returned unchanged.
    """
    if not _is_async(function):
        return function

    @functools.wraps(function, updated=())
    async def call(argument: Any) -> Any:
        # Some exceptions would end the caller's loop.
        work: Any = contained(cast("Awaitable[Any]", function(argument)))
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))

    return call


def _function(spec: AgentSpec) -> Callable[..., Any]:
    if spec.function is None:
        raise ConfigError(agent_problem(spec.where, f"an agent of kind {KIND!r} needs a function; set `function`"))
    return spec.function


def _takes_request(function: Callable[..., Any]) -> bool:
    try:
        signature = inspect.signature(function)
    except Exception:  # noqa: BLE001 - objects of the caller can define `__getattr__`
        # Some functions that are written in C have no signature either.
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
    found = function(argument) if _is_async(function) else await in_thread(lambda: function(argument))
    return await contained(found) if inspect.isawaitable(found) else found
