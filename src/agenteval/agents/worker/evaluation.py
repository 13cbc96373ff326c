"""Calls the user's evaluation functions.

This file runs in the worker process under the user's Python (3.8 or newer) and needs only the
standard library.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

from agenteval.grader import number, plain, resolve


async def evaluate(reference: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Call ``module:function`` with those of ``output``, ``parameters``, ``prompt`` and ``context`` that it accepts.

    Returns:
        ``passed``, and ``score``, ``message`` and ``metadata`` or ``None``.

    Raises:
        TypeError: the return value has the wrong type; also any exception of the function.
    """
    function = resolve(reference)
    called = functools.partial(function, **accepted(function, arguments))
    value = await asyncio.get_running_loop().run_in_executor(None, called)
    return verdict(await value if inspect.isawaitable(value) else value)


def accepted(function: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that a function accepts."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return dict(arguments)
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return dict(arguments)
    names = {parameter.name for parameter in parameters}
    return {name: value for name, value in arguments.items() if name in names or name == "output"}


def verdict(value: Any) -> Mapping[str, Any]:
    """Return the verdict in a function's return value; a boolean (Python or NumPy) is the verdict alone."""
    value = plain(value)
    if isinstance(value, bool):
        value = {"passed": value}
    passed = plain(value.get("passed")) if isinstance(value, Mapping) else None
    if not isinstance(passed, bool):
        shown = type(value).__name__ if not isinstance(value, Mapping) else "a dict without a boolean 'passed'"
        wanted = "a dict with 'passed' (true or false) and optionally 'score', 'message' and 'metadata'"
        raise TypeError(f"the evaluation function returned {shown}; it must return {wanted}")
    message, metadata = value.get("message"), value.get("metadata")
    if not isinstance(metadata, (Mapping, type(None))):
        raise TypeError(f"the evaluation function returned {type(metadata).__name__} as 'metadata', not a dict")
    return {
        "passed": passed,
        "score": None if value.get("score") is None else number(value["score"]),
        "message": None if message is None else str(message),
        "metadata": None
        if metadata is None
        else json.loads(json.dumps(dict(metadata), default=_json, skipkeys=True)),
    }


def _json(value: Any) -> Any:
    """Convert a value that JSON cannot represent."""
    converted = plain(value)
    return str(value) if converted is value else converted
