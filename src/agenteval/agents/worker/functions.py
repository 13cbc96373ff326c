"""Calls Python functions that are tools of a model agent.

This file runs in the worker process under the user's Python (3.8 or newer) and needs nothing but the
standard library.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import typing
from typing import Any, Callable, Dict, Mapping

from agenteval.agents.worker.references import imported

_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}


def describe(file: str, name: str) -> Mapping[str, Any]:
    """Return the JSON Schema of a function's arguments, from its signature and annotations.

    Raises:
        ImportError, AttributeError, TypeError: the function does not exist; its module can raise others.
    """
    function = resolve(file, name)
    try:
        hints = typing.get_type_hints(function)
    except Exception:  # noqa: BLE001 - annotations may be invalid at run time
        hints = {}
    properties: Dict[str, Any] = {}
    required = []
    others = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            others = True
        elif parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise TypeError("%s has the positional-only parameter %r" % (name, parameter.name))
        elif parameter.kind is not inspect.Parameter.VAR_POSITIONAL:
            properties[parameter.name] = schema(hints.get(parameter.name, Any))
            if parameter.default is inspect.Parameter.empty:
                required.append(parameter.name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": others}


async def call(file: str, name: str, arguments: Mapping[str, Any]) -> Any:
    """Call a function; values in its result that are not JSON become text."""
    function = resolve(file, name)
    value = await asyncio.get_running_loop().run_in_executor(None, lambda: function(**arguments))
    if inspect.isawaitable(value):
        value = await value
    return json.loads(json.dumps(value, default=str, skipkeys=True))


def resolve(file: str, name: str) -> Callable[..., Any]:
    """Return the function of a Python file."""
    function = getattr(imported(file), name)
    if not callable(function):
        raise TypeError("%r in %s is not callable" % (name, file))
    return function  # type: ignore[no-any-return]


def schema(annotation: Any) -> Dict[str, Any]:
    """Return the JSON Schema of an annotation; without an equivalent, a schema that allows everything."""
    if isinstance(annotation, type) and annotation in _JSON_TYPES:
        return {"type": _JSON_TYPES[annotation]}
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin in (list, set, tuple) and arguments:
        return {"type": "array", "items": schema(arguments[0])}
    if origin in _JSON_TYPES:
        return {"type": _JSON_TYPES[origin]}
    present = [item for item in arguments if item is not type(None)]
    if origin is not None and len(present) < len(arguments) and len(present) == 1:
        return schema(present[0])
    return {}
