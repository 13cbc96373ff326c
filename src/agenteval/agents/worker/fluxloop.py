"""Calls the ``runner`` of a FluxLoop project with the arguments that FluxLoop gives it.

This file runs in the worker process under the user's Python (3.8 or newer) and needs only the standard
library. If FluxLoop's SDK is installed there, its observations are the tool calls and the tokens of the answer.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from agenteval.agents.worker.calls import called
from agenteval.agents.worker.references import find, get, parameters, plain
from agenteval.agents.worker.replies import Chunks, reply_of

# The parameter that gets the input: the first of these names, else the first parameter.
_INPUTS = ("input", "input_text", "message", "query", "text", "content", "user_message")
# Further parameters, by what they get.
_PERSONA = ("persona", "user_persona", "persona_config")
_PERSONA_TEXT = ("persona_prompt", "persona_description", "persona_text")
_ITERATION = ("iteration", "run_iteration", "loop_index")
_STREAM_PATH = "update.delta"
# An observation with this name has the answer.
_FINAL = "agent_final_response"
_TARGETS: dict[str, Callable[..., Any]] = {}
_LOCK = threading.Lock()


class Persona:
    """A persona, for agents that take one where FluxLoop's SDK is not installed."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.__dict__.update(fields)

    def to_prompt(self) -> str:
        """Return the description of the persona."""
        lines = [f"{name}: {_listed(value)}" for name, value in vars(self).items() if value]
        return "\n".join(lines)


def check(settings: Mapping[str, Any]) -> None:
    """Check that the target can be called with an input."""
    _arguments(settings, {"input": ""}, 0)


async def answer(settings: Mapping[str, Any], request: Mapping[str, Any], iteration: int) -> Mapping[str, Any]:
    """Call the target.

    Args:
        settings: ``target``, ``factory``, ``factory_kwargs`` and ``stream_path``.
        request: the agent protocol; its context may contain the ``persona``.
        iteration: number of the iteration, from 0.

    Returns:
        ``response``, ``tool_calls`` and ``usage`` of the agent protocol. A JSON value is the answer itself, whatever
        its keys.
    """
    function = _target(settings)
    with _observed() as observations:
        value, events = await called(function, (), _arguments(settings, request, iteration))
    reply = dict(_reply(value, events, settings))
    final = next((item.output for item in reversed(observations) if item.name == _FINAL and item.output), None)
    reply["response"] = _as_text(final) if final is not None else reply["response"] or ""
    reply["tool_calls"] = reply["tool_calls"] or [_call(item) for item in observations if _kind(item) == "tool"]
    reply["usage"] = reply["usage"] or _tokens(observations)
    return reply


def _target(settings: Mapping[str, Any]) -> Callable[..., Any]:
    key = json.dumps(settings, sort_keys=True, default=str)
    with _LOCK:
        if key not in _TARGETS:
            _TARGETS[key] = _made(settings)
        return _TARGETS[key]


def _made(settings: Mapping[str, Any]) -> Callable[..., Any]:
    reference, factory = settings["target"], settings.get("factory")
    module, _, path = reference.partition(":")
    first, *rest = path.split(".")
    found = find(f"{module}:{first}")
    if isinstance(found, type) and factory:
        found = find(factory)(**settings.get("factory_kwargs") or {})
    elif isinstance(found, type):
        try:
            found = found()
        except TypeError as error:
            message = f"{module}:{first} cannot be made without arguments ({error}); name a runner.factory"
            raise TypeError(message) from None
    found = functools.reduce(getattr, rest, found)
    if not callable(found):
        raise TypeError(f"{reference} is a {type(found).__name__}, which cannot be called")
    return found  # type: ignore[no-any-return]


def _arguments(settings: Mapping[str, Any], request: Mapping[str, Any], iteration: int) -> dict[str, Any]:
    names = [name for name in parameters(_target(settings)) if name != "self"]
    if not names:
        raise TypeError(f"{settings['target']} has no parameter for the input")
    found = {next((name for name in _INPUTS if name in names), names[0]): request["input"]}
    fields = (request.get("context") or {}).get("persona")
    persona = _persona(fields) if fields else None
    offered = [(_ITERATION, iteration)]
    if persona is not None:
        offered += [(_PERSONA, persona), (_PERSONA_TEXT, persona.to_prompt())]
    for candidates, value in offered:
        name = next((name for name in candidates if name in names and name not in found), None)
        if name is not None:
            found[name] = value
    return found


def _persona(fields: Mapping[str, Any]) -> Any:
    if importlib.util.find_spec("fluxloop") is None:
        return Persona(fields)
    try:
        return importlib.import_module("fluxloop").PersonaConfig(**{"description": "", **fields})
    except Exception:  # noqa: BLE001 - another version may need other fields
        return Persona(fields)


def _listed(value: Any) -> str:
    return "; ".join(map(str, value)) if isinstance(value, list) else str(value)


@contextlib.contextmanager
def _observed() -> Iterator[Sequence[Any]]:
    """Collect the observations that the agent reports to FluxLoop's SDK in the block, if it is installed."""
    try:
        sdk = importlib.import_module("fluxloop") if importlib.util.find_spec("fluxloop") is not None else None
    except Exception:  # noqa: BLE001 - the agent works without it
        sdk = None
    if sdk is None:
        yield ()
        return
    # Nothing is sent, and nothing is written beside the agent.
    sdk.configure(use_collector=False, offline_store_enabled=False)
    with sdk.instrument("agenteval") as context:
        yield context.observations


def _reply(value: Any, events: Sequence[Any], settings: Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(value, Chunks):
        streamed = _streamed(value, (settings.get("stream_path") or _STREAM_PATH).split("."))
        return reply_of(value if streamed is None else streamed, events)
    if value is None or isinstance(value, str) or _is_json(value):
        return {"response": _as_text(value), "tool_calls": [], "usage": None}
    try:
        return reply_of(value, events)
    except TypeError:
        return {"response": str(value), "tool_calls": [], "usage": None}


def _streamed(chunks: Sequence[Any], path: Sequence[str]) -> str | None:
    texts = [functools.reduce(get, path, chunk) if not isinstance(chunk, str) else chunk for chunk in chunks]
    found = [text for text in texts if isinstance(text, str)]
    return "".join(found) if found else None


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)


def _kind(observation: Any) -> Any:
    kind = observation.type
    return getattr(kind, "value", kind)


def _call(observation: Any) -> Mapping[str, Any]:
    seconds = observation.end_time - observation.start_time if observation.end_time else None
    return {
        "name": observation.name,
        "args": plain(observation.input),
        "result": plain(observation.output),
        "error": observation.error,
        "duration_ms": None if seconds is None else seconds.total_seconds() * 1000,
    }


def _tokens(observations: Sequence[Any]) -> Mapping[str, int] | None:
    total: dict[str, int] = {}
    for item in observations:
        for name, count in (("input_tokens", item.prompt_tokens), ("output_tokens", item.completion_tokens)):
            if isinstance(count, int):
                total[name] = total.get(name, 0) + count
    return total or None
