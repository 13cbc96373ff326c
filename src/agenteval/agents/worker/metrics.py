"""Calls the user's functions: tools, evaluation functions and metrics."""

from __future__ import annotations

import asyncio
import difflib
import functools
import importlib
import inspect
import json
import pathlib
import sys
import threading
import typing
from typing import Any, Callable, Collection, Dict, Mapping, Sequence

from agenteval.agents.worker.references import attribute, imported, importing
from agenteval.grader import FrozenDict, Observation, Usage, frozen, number, plain, result, texts, tool_invocations
from agenteval.grader import resolve as resolve_grader

# Calls Python functions that are tools of a model agent.


_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}


def describe(file: str, name: str) -> Mapping[str, Any]:
    """Return the JSON Schema of a function's arguments, from its signature and annotations."""
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


# Calls the user's evaluation functions.


async def evaluate(reference: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Call ``module:function`` with those of ``output``, ``parameters``, ``prompt`` and ``context`` that it accepts.

    Returns:
        ``passed``, and ``score``, ``message`` and ``metadata`` or ``None``.
    """
    function = resolve_grader(reference)
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
    converted = plain(value)
    return str(value) if converted is value else converted


# Calls user metrics: functions and classes in files, modules and installed packages.


_GROUP = "agenteval.metrics"
_LOCK = threading.RLock()
_METRICS: dict[tuple[str, str], Callable[[Observation], Any]] = {}


def check(reference: str, arguments: Mapping[str, Any], requirable: Sequence[str]) -> Mapping[str, str]:
    """Check that a metric exists, accepts its options and requires known fields.

    Args:
        reference: ``path.py:name``, ``module:name``, or the name of an entry point.
        requirable: the fields that a metric may require.

    Returns:
        ``name`` and ``version`` of the distribution for an entry point, else an empty mapping.
    """
    needed = required(find(reference, arguments))
    unknown = sorted(set(needed) - set(requirable))
    if unknown:
        close = difflib.get_close_matches(unknown[0], requirable, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"`requires` names {unknown[0]!r}{hint}; possible names: {', '.join(requirable)}")
    if ":" in reference:
        return {}
    distribution = getattr(entry_point(reference), "dist", None)
    if distribution is None:
        return {"name": reference, "version": ""}
    return {"name": distribution.metadata["Name"], "version": distribution.version}


async def measure(reference: str, arguments: Mapping[str, Any], answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Score an answer.

    Args:
        answer: the fields of ``Observation`` as JSON.

    Returns:
        ``skipped`` with the reason, or ``score``, ``passed``, ``reason`` and ``details``.
    """
    metric = find(reference, arguments)
    seen = observation(answer)
    missing = sorted(name for name in required(metric) if getattr(seen, name, None) in (None, ()))
    if missing:
        return {"skipped": f"the case has no {' and '.join(missing)}"}
    value = await asyncio.get_running_loop().run_in_executor(None, metric, seen)
    if inspect.isawaitable(value):
        value = await value
    return {"skipped": "the metric does not apply"} if value is None else result(value, "metric")


def find(reference: str, arguments: Mapping[str, Any]) -> Callable[[Observation], Any]:
    """Return the scoring function with its options: the named function, or ``measure`` of the named object."""
    key = (reference, json.dumps(arguments, sort_keys=True))
    with _LOCK:
        if key not in _METRICS:
            _METRICS[key] = with_options(load(reference), dict(arguments), reference)
        return _METRICS[key]


def required(metric: Callable[[Observation], Any]) -> Collection[str]:
    """The fields that a metric requires: `requires` of the object or function."""
    method = metric.func if isinstance(metric, functools.partial) else metric
    # A class names what it needs; the instance may know better.
    needed = getattr(getattr(method, "__self__", method), "requires", ())
    if not isinstance(needed, (list, tuple, set, frozenset)) or not all(isinstance(name, str) for name in needed):
        raise TypeError("`requires` must be a list or set of names, such as frozenset({'ground_truth'})")
    return needed


def with_options(target: Any, arguments: dict[str, Any], reference: str) -> Callable[[Observation], Any]:
    """Return the scoring function with its options."""
    if inspect.isclass(target):
        target, arguments = target(**arguments), {}
    method = getattr(target, "measure", target)
    if not callable(method):
        raise TypeError(f"{reference!r} is not a function and has no method `measure`")
    try:
        signature = inspect.signature(method)
    except (TypeError, ValueError):
        # Some functions that are written in C have no signature.
        signature = None
    if signature is not None:
        signature.bind(None, **arguments)
    return functools.partial(method, **arguments) if arguments else method


def load(reference: str) -> Any:
    """Return the object that a reference names."""
    place, _, name = reference.rpartition(":")
    if not place:
        entry = entry_point(reference)
        with importing():
            return entry.load()
    if place.endswith(".py"):
        target = from_file(place)
    else:
        with importing(place):
            target = importlib.import_module(place)
    return attribute(target, name)


def from_file(path: str) -> Any:
    """Return the module in a file; it can import the files in its directory."""
    folder = str(pathlib.Path(path).resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    return imported(path)


def entry_point(name: str) -> Any:
    """Return the entry point that an installed distribution registers under a name."""
    from importlib import metadata

    known: Any = metadata.entry_points()
    entries: list[Any] = list(known.select(group=_GROUP) if hasattr(known, "select") else known.get(_GROUP, ()))
    found = {entry.value: entry for entry in entries if entry.name == name}
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        raise LookupError(f"several packages register it ({', '.join(sorted(found))}); uninstall all but one")
    close = difflib.get_close_matches(name, [entry.name for entry in entries], n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise LookupError(f"no installed package registers it as an entry point of {_GROUP}{hint}")


def observation(answer: Mapping[str, Any]) -> Observation:
    """Return the answer as metrics receive it, read-only."""
    usage = answer.get("usage")
    return Observation(
        **{
            **answer,
            "tool_calls": tool_invocations(answer.get("tool_calls")),
            "usage": None if usage is None else Usage(**usage),
            "retrieval_context": texts(answer.get("retrieval_context")),
            "context": texts(answer.get("context")),
            "config": frozen(answer.get("config") or FrozenDict()),
            "trace": frozen(answer.get("trace") or FrozenDict()),
        }
    )
