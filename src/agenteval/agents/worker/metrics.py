"""Calls user metrics: functions and classes in files, modules and installed packages.

This file runs in the worker process under the user's Python (3.8 or newer) and needs nothing but the
standard library.
"""

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
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from agenteval.agents.worker.references import attribute, imported, importing
from agenteval.grader import FrozenDict, Observation, Usage, frozen, result, texts, tool_invocations

_GROUP = "agenteval.metrics"
_LOCK = threading.RLock()
_METRICS: dict[tuple[str, str], Callable[[Observation], Any]] = {}


def check(reference: str, arguments: Mapping[str, Any], requirable: Sequence[str]) -> Mapping[str, str]:
    """Check that a metric exists, accepts its options and requires known fields.

    Args:
        reference: ``path.py:name``, ``module:name``, or the name of an entry point.
        arguments: the options.
        requirable: the fields that a metric may require.

    Returns:
        ``name`` and ``version`` of the distribution for an entry point, else an empty mapping.

    Raises:
        Exception: the metric does not exist, or importing its module fails.
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
        reference: as for `check`.
        arguments: as for `check`.
        answer: the fields of ``Observation`` as JSON.

    Returns:
        ``skipped`` with the reason, or ``score``, ``passed``, ``reason`` and ``details``.

    Raises:
        TypeError: the metric returned a value of a wrong type; also any exception of the metric.
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
    """The fields that a metric requires: `requires` of the object or function.

    Raises:
        TypeError: it is not a list of names.
    """
    method = metric.func if isinstance(metric, functools.partial) else metric
    # A class names what it needs; the instance may know better.
    needed = getattr(getattr(method, "__self__", method), "requires", ())
    if not isinstance(needed, (list, tuple, set, frozenset)) or not all(isinstance(name, str) for name in needed):
        raise TypeError("`requires` must be a list or set of names, such as frozenset({'ground_truth'})")
    return needed


def with_options(target: Any, arguments: dict[str, Any], reference: str) -> Callable[[Observation], Any]:
    """Return the scoring function with its options.

    Raises:
        TypeError: the function or class does not accept the options, or has no ``measure`` method.
    """
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
    """Return the entry point that an installed distribution registers under a name.

    Raises:
        LookupError: no distribution or several distributions register the name.
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
