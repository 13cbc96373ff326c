"""Calls metrics of the user: functions and classes of files, modules and installed packages.

This file runs in the worker process under the user's Python (3.8 or newer) and needs nothing but the
standard library.
"""

from __future__ import annotations

import asyncio
import difflib
import functools
import importlib
import importlib.util
import inspect
import json
import pathlib
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from agenteval.grader import FrozenDict, Observation, ToolInvocation, Usage, frozen, result, size

_GROUP = "agenteval.metrics"
_LOCK = threading.RLock()
_MODULES: dict[pathlib.Path, Any] = {}
_METRICS: dict[tuple[str, str], Callable[[Observation], Any]] = {}


def check(reference: str, arguments: Mapping[str, Any]) -> Mapping[str, str]:
    """Make sure that a metric exists and takes its options.

    Args:
        reference: ``path.py:name``, ``module:name``, or the name of an entry point.
        arguments: the options.

    Returns:
        For an entry point ``name`` and ``version`` of its distribution, else nothing.

    Raises:
        Exception: it does not, or its module raises when imported.
    """
    find(reference, arguments)
    if ":" in reference:
        return {}
    distribution = getattr(entry_point(reference), "dist", None)
    if distribution is None:
        return {"name": reference, "version": ""}
    return {"name": distribution.metadata["Name"], "version": distribution.version}


async def measure(reference: str, arguments: Mapping[str, Any], answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Score an answer.

    Args:
        reference: as for `check`.
        arguments: as for `check`.
        answer: the fields of ``Observation`` as JSON.

    Returns:
        ``skipped`` with the reason, or ``score``, ``passed``, ``reason`` and ``details``.

    Raises:
        TypeError: the metric returned something else than it may; whatever the metric raises.
    """
    metric = find(reference, arguments)
    seen = observation(answer)
    # A class names what it needs; the instance may know better.
    needed = getattr(getattr(metric, "__self__", None), "requires", ())
    missing = sorted(name for name in needed if getattr(seen, name, None) in (None, ()))
    if missing:
        return {"skipped": f"the case has no {' and '.join(missing)}"}
    value = await asyncio.get_running_loop().run_in_executor(None, metric, seen)
    if inspect.isawaitable(value):
        value = await value
    convert = getattr(value, "tolist", None)
    # NumPy's numbers know Python's.
    value = convert() if callable(convert) else value
    return {"skipped": "the metric does not apply"} if value is None else result(value, "metric")


def find(reference: str, arguments: Mapping[str, Any]) -> Callable[[Observation], Any]:
    """The function that scores: the one named, or the ``measure`` of the object named, with its options."""
    key = (reference, json.dumps(arguments, sort_keys=True))
    with _LOCK:
        if key not in _METRICS:
            _METRICS[key] = with_options(load(reference), dict(arguments), reference)
        return _METRICS[key]


def with_options(target: Any, arguments: dict[str, Any], reference: str) -> Callable[[Observation], Any]:
    """The function that scores.

    Raises:
        TypeError: it takes no such options, or cannot score.
    """
    if inspect.isclass(target):
        target, arguments = target(**arguments), {}
    method = getattr(target, "measure", target)
    if not callable(method):
        raise TypeError(f"{reference!r} is neither a function nor has it a method `measure`")
    try:
        signature = inspect.signature(method)
    except (TypeError, ValueError):
        # Functions written in C may not tell.
        signature = None
    if signature is not None:
        signature.bind(None, **arguments)
    return functools.partial(method, **arguments) if arguments else method


def load(reference: str) -> Any:
    """The object that a reference names."""
    place, _, name = reference.rpartition(":")
    if not place:
        return entry_point(reference).load()
    target = from_file(place) if place.endswith(".py") else importlib.import_module(place)
    for step in name.split("."):
        target = getattr(target, step)
    return target


def from_file(path: str) -> Any:
    """The module in a file; files beside it can be imported from it."""
    file = pathlib.Path(path).resolve()
    if file not in _MODULES:
        if str(file.parent) not in sys.path:
            sys.path.append(str(file.parent))
        name = f"agenteval_metrics_{len(_MODULES)}_{file.stem}"
        spec = importlib.util.spec_from_file_location(name, str(file))
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} cannot be imported")
        module = importlib.util.module_from_spec(spec)
        # Dataclasses look their module up by name.
        sys.modules[name] = module
        spec.loader.exec_module(module)
        _MODULES[file] = module
    return _MODULES[file]


def entry_point(name: str) -> Any:
    """The entry point that an installed distribution registers under a name.

    Raises:
        LookupError: there is none, or there are several.
    """
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
    """The answer as metrics see it, closed against changes."""
    calls = tuple(
        ToolInvocation(
            name=call["name"],
            args=frozen(call.get("args") or {}),
            result=frozen(call.get("result")),
            bytes=size(call.get("result")),
            duration_ms=call.get("duration_ms"),
            error=call.get("error"),
        )
        for call in answer.get("tool_calls") or ()
    )
    usage = answer.get("usage")
    return Observation(
        **{
            **answer,
            "tool_calls": calls,
            "usage": None if usage is None else Usage(**usage),
            "retrieval_context": texts(answer.get("retrieval_context")),
            "context": texts(answer.get("context")),
            "config": frozen(answer.get("config") or FrozenDict()),
            "trace": frozen(answer.get("trace") or FrozenDict()),
        }
    )


def texts(value: Any) -> Any:
    """A list of texts as a tuple, which nobody can change."""
    return None if value is None else tuple(value)
