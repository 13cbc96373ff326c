"""Distinguishes arguments that do not fit an agent's method or a tool from errors inside it.

This file runs in the worker process under the user's Python (3.8 or newer) and needs only the
standard library.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

# The attributes of tool objects in which frameworks store the wrapped function.
_WRAPPED = ("__wrapped__", "real_fn", "fn", "func", "entrypoint")
_TAKES_ALL = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


def wrapped(target: Any) -> Any:
    """Return the function that a tool object wraps; ``None`` without one."""
    found = (getattr(target, name, None) for name in _WRAPPED)
    return next((function for function in found if callable(function)), None)


def parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters by name; empty if the signature is unknown."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def must_fit(reference: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Check arguments against the signature of a function, or of the function that it wraps.

    Raises:
        TypeError: they do not fit; the message names the function's parameters.
    """
    takes_all = {parameter.kind for parameter in parameters(function).values()} == _TAKES_ALL
    inner = wrapped(function) if takes_all else None
    try:
        signature = inspect.signature(inner or function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        takes = ", ".join(str(item.replace(annotation=item.empty)) for item in signature.parameters.values())
        given = f"; given: {', '.join(kwargs)}" if kwargs else ""
        raise TypeError(f"the arguments do not fit {reference}({takes}): {error}{given}") from None


def must_fit_schema(reference: str, function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Check the names in a mapping against the JSON Schema of a LangChain tool, which ignores unknown ones.

    Args:
        reference: the tool, for the message.
        function: a method of the tool.
        given: the arguments by name.

    Raises:
        TypeError: an argument is unknown, or a required argument is missing.
    """
    schema = _input_schema(getattr(function, "__self__", None))
    known, required = schema.get("properties") or {}, schema.get("required") or ()
    missing = [name for name in required if name not in given]
    is_open = not known or schema.get("additionalProperties", False) is not False
    unknown = [] if is_open else [name for name in given if name not in known]
    if missing or unknown:
        problems = [f"{name!r} is missing" for name in missing] + [f"{name!r} is unknown" for name in unknown]
        raise TypeError(f"the arguments do not fit {reference}({', '.join(known)}): {', '.join(problems)}")


def _input_schema(tool: Any) -> Mapping[str, Any]:
    schema = getattr(tool, "args_schema", None)
    if isinstance(schema, Mapping):
        return schema
    make = getattr(tool, "get_input_schema", None)
    if not callable(make):
        return {}
    try:
        made = make().model_json_schema()
    except Exception:  # noqa: BLE001 - arguments that the framework fills in itself may have no schema
        return {}
    return made if isinstance(made, Mapping) else {}
