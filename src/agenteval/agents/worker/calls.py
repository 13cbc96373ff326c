"""Calls agents and tools that user modules define with a framework.

This file runs in the worker process under the user's Python (3.8 or newer) and needs only the standard
library. The modules are imported unchanged; ``replies`` reads what a framework returns.
"""

from __future__ import annotations

import asyncio
import collections.abc
import contextvars
import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from agenteval.agents.worker.adapters import runner
from agenteval.agents.worker.references import find, has, must_fit, must_fit_schema, parameters, plain, wrapped
from agenteval.agents.worker.replies import Chunks, reply_of

# Methods that take one mapping instead of keywords.
# A chain of exceptions can be a circle.
_MOST_CAUSES = 20
_TAKE_A_MAPPING = ("invoke", "ainvoke")
_USUAL_METHODS = ("run", "arun", "invoke", "ainvoke", "chat", "achat", "query", "__call__")
# Threads start on demand; callers limit the number of concurrent calls.
_THREADS = ThreadPoolExecutor(max_workers=1000)


def check(reference: str, method: str, instantiate: bool) -> None:
    """Check that an agent or tool exists and has the method."""
    _function(reference, method, instantiate)


async def ask(
    reference: str, method: str, instantiate: bool, prompt_argument: str | None, request: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Ask an agent.

    Args:
        reference: ``module:variable``.
        prompt_argument: the parameter that takes the prompt, for ``invoke`` and ``ainvoke`` the key; ``None``
            for the first parameter. The key ``messages`` takes a list of messages.
        request: the agent protocol; ``input`` is the prompt, and ``context`` is passed to methods that take one.

    Returns:
        ``response``, ``tool_calls`` and ``usage`` of the agent protocol.
    """
    function = await _in_thread(_function, reference, method, instantiate)
    prompt = request["input"]
    args, kwargs = _prompt_arguments(function, method, prompt_argument, prompt)
    context = request.get("context") or {}
    parameter = parameters(function).get("context")
    if parameter is not None and "context" not in kwargs and (context or parameter.default is parameter.empty):
        kwargs["context"] = context
    must_fit(reference, function, args, kwargs)
    value, events = await called(function, args, kwargs)
    if value is None:
        raise TypeError(f"{reference}.{method} returned nothing; execution.method must return the answer")
    return reply_of(value, events)


async def call_tool(
    reference: str, method: str, instantiate: bool, context: Mapping[str, Any] | None, prompt: str | None
) -> Mapping[str, Any]:
    """Call a tool.

    Args:
        reference: ``module:name``.
        context: the arguments by name; for ``invoke`` and ``ainvoke`` the single mapping.

    Returns:
        ``value``, the result as JSON; or, of the exception that the tool raised, ``raised``: type and text, ``text``,
        ``types``: names of its class and base classes, ``causes``: the same of the exceptions that caused it.
    """
    function = await _in_thread(_function, reference, method, instantiate)
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    if context and method in _TAKE_A_MAPPING:
        must_fit_schema(reference, function, context)
        args = (dict(context),)
    elif context:
        kwargs = dict(context)
    elif prompt is not None:
        args = (prompt,)
    elif method in _TAKE_A_MAPPING:
        args = ({},)
    must_fit(reference, function, args, kwargs)
    try:
        value, _ = await called(function, args, kwargs)
    except (asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - the exception is the result of the tool
        return _raised(error)
    # LlamaIndex wraps the function's return value.
    packed = has(value, "tool_name") and hasattr(value, "raw_output")
    return {"value": plain(value.raw_output if packed else value)}


def _prompt_arguments(
    function: Callable[..., Any], method: str, name: str | None, prompt: str
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if name is None:
        return (prompt,), {}
    if method in _TAKE_A_MAPPING:
        if name == "messages":
            return ({name: [("user", prompt)]},), {}
        # LangChain's agents without an executor need the steps until now; other runnables ignore the key.
        steps: dict[str, Any] = {"intermediate_steps": []} if name == "input" and _is_sequence(function) else {}
        return ({name: prompt, **steps},), {}
    return (), {name: prompt}


def _is_sequence(function: Callable[..., Any]) -> bool:
    """Return whether a function is a method of a sequence of LangChain's runnables."""
    kinds = type(getattr(function, "__self__", None)).__mro__
    return any(kind.__name__ == "RunnableSequence" for kind in kinds)


def _function(reference: str, method: str, instantiate: bool) -> Callable[..., Any]:
    target = find(reference)
    if instantiate:
        try:
            target = target()
        except TypeError as error:
            raise TypeError(f"{reference} cannot be instantiated without arguments: {error}") from error
    run = runner(target) if method == "run" else None
    if run is not None:
        return run
    if method == "__call__":
        # The object itself is called: its signature is more precise than its method's.
        found = target if callable(target) else wrapped(target) or _only_function(reference, target)
    elif method == "invoke" and wrapped(target) is None and getattr(target, "coroutine", None) is not None:
        # A LangChain tool made from an asynchronous function rejects ``invoke``.
        found = getattr(target, "ainvoke", None)
    else:
        found = getattr(target, method, None)
    if not callable(found):
        others = [name for name in _USUAL_METHODS if callable(getattr(target, name, None))]
        hint = f"; it has {', '.join(others)}" if others else ""
        kind = type(target).__name__
        raise AttributeError(f"{reference}, a {kind}, has no method {method!r} (execution.method){hint}")
    return found  # type: ignore[no-any-return]


def _only_function(reference: str, target: Any) -> Any:
    """Return the function of a toolkit; ``None`` if the object has no such table."""
    tables = (getattr(target, name, None) for name in ("functions", "async_functions"))
    found = {name: item for table in tables if isinstance(table, Mapping) for name, item in table.items()}
    if len(found) > 1:
        message = f"has several functions ({', '.join(found)}); name one under `tools:` in agenteval.yaml"
        raise TypeError(
            f"{reference}, a {type(target).__name__}, {message}, for instance python: {reference}.{next(iter(found))}"
        )
    return next((wrapped(item) or item for item in found.values()), None)


async def called(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Any, list[Any]]:
    """Call a function and await its result; return it with the events reported meanwhile."""
    if _starts_on_loop(function):
        value = function(*args, **kwargs)
    else:
        value = await _in_thread(_drained, function, args, kwargs)
    events: list[Any] = []
    if inspect.isawaitable(value):
        if hasattr(value, "stream_events"):
            events = [event async for event in value.stream_events()]
        value = await value
    if hasattr(value, "__aiter__"):
        value = Chunks([chunk async for chunk in value])
    return value, events


async def _in_thread(function: Callable[..., Any], *args: Any) -> Any:
    """Call user code in a thread, where it may block and start event loops."""
    context = contextvars.copy_context()
    call = functools.partial(context.run, _outcome, function, *args)
    value, error = await asyncio.get_running_loop().run_in_executor(_THREADS, call)
    if error is not None:
        raise error
    return value


def _outcome(function: Callable[..., Any], *args: Any) -> tuple[Any, BaseException | None]:
    try:
        return function(*args), None
    except BaseException as error:  # noqa: BLE001 - raised again by the awaiting caller
        return None, error


def _drained(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    value = function(*args, **kwargs)
    return Chunks(value) if isinstance(value, collections.abc.Iterator) else value


def _starts_on_loop(function: Callable[..., Any]) -> bool:
    """Return whether a plain function is annotated to return an awaitable; it may need a running loop."""
    annotation = getattr(function, "__annotations__", {}).get("return")
    if isinstance(annotation, str):
        names = getattr(inspect.unwrap(getattr(function, "__func__", function)), "__globals__", {})
        annotation = names.get(annotation.partition("[")[0])
    kind = typing.get_origin(annotation) or annotation
    return isinstance(kind, type) and hasattr(kind, "__await__") and not inspect.iscoroutinefunction(function)


def _raised(error: BaseException) -> Mapping[str, Any]:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a broken __str__ must not hide the error
        text = "(no text)"
    return {
        "raised": f"{type(error).__name__}: {text}",
        "text": text,
        "types": _types(error),
        "causes": [name for cause in _causes(error) for name in _types(cause)],
    }


def _types(error: BaseException) -> list[str]:
    return [kind.__name__ for kind in type(error).__mro__]


def _causes(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and len(found) < _MOST_CAUSES:
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
        if cause is not None:
            found.append(cause)
    return found
