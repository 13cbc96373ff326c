"""Asks what ``python:`` names: a function, a class, an object with a usual method, or an agent of a framework.

This file runs in the worker process under the user's Python (3.8 or newer) and needs only the standard
library. Frameworks and event loops are slow to import, so their code is imported where it is used.
"""

from __future__ import annotations

import collections.abc
import functools
import types
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from agenteval.agents.worker.references import find

Request = Mapping[str, Any]

# Methods that answer, the first that an object has; ``__call__`` gets the request, the others the input.
_METHODS = ("__call__", "invoke", "ainvoke", "run", "arun", "chat", "achat", "query", "aquery")
# Names of a first parameter that mean the input.
_TEXTS = frozenset(
    {"prompt", "question", "query", "message", "text", "msg", "user_input", "user_message", "user_prompt"}
)
_REQUESTS = frozenset({"request"})
# Parts of a request that functions get if they have a parameter of the name.
_PARTS = frozenset({"history", "session", "context", "config", "files", "case", "turn"})
_JSON = (str, int, float, bool, list, type(None))
_GOT_TEXT = (
    "%s got the question as a text; if it takes another input, name a function that calls it: "
    'def answer(request): return agent.%s({"messages": [("user", request["input"])]})'
)
# Fields of results with the answer, and those with more.
_ANSWERS = ("structured_response", "output", "final_output", "content", "text", "response")
_BESIDE = (("retrieval_context", (list, str)), ("metadata", dict), ("error", object))


class Result(NamedTuple):
    """The result of a framework's agent, with the events that it reported meanwhile."""

    value: Any
    events: Sequence[Any] = ()


class AnswerTarget:
    """Something that answers requests.

    Args:
        call: returns the answer to a request: a value, an awaitable or an iterator.
        takes_history: whether it gets the earlier turns of a conversation, or keeps them itself.
    """

    def __init__(self, call: Callable[[Request], Any], *, takes_history: bool, is_class: bool = False) -> None:
        self.call = call
        self.takes_history = takes_history
        self.is_class = is_class


_TARGETS: Dict[str, AnswerTarget] = {}
_INSTANCES: Dict[Tuple[str, str], Any] = {}


def check(reference: str) -> Mapping[str, bool]:
    """Check that an object can answer.

    Returns:
        ``takes_history`` and ``is_class`` of the target.
    """
    target = _target(reference)
    return {"takes_history": target.takes_history, "is_class": target.is_class}


def answer(reference: str, request: Request, whole: bool = False) -> Any:
    """Ask an object.

    Args:
        reference: ``module:name`` or ``path/file.py:name``.
        whole: whether the caller looks for the answer in the whole result of a framework.

    Returns:
        ``value``: the reply; if ``whole``, also ``tool_calls`` and ``usage``. Perhaps as an awaitable.
    """
    value = _target(reference).call(request)
    if isinstance(value, _JSON):
        return {"value": value}
    if isinstance(value, collections.abc.Iterator) and not isinstance(value, collections.abc.Awaitable):
        return {"value": _joined(list(value))}
    if isinstance(value, (collections.abc.Awaitable, collections.abc.AsyncIterable)):
        return _later(value, whole)
    return _read(value, whole)


def end(reference: str, session: str) -> None:
    """Forget the instance of a conversation."""
    _INSTANCES.pop((reference, session), None)


async def _later(value: Any, whole: bool) -> Any:
    if isinstance(value, collections.abc.Awaitable):
        value = await value
    if isinstance(value, collections.abc.AsyncIterable):
        return {"value": _joined([chunk async for chunk in value])}
    if isinstance(value, collections.abc.Iterator):
        return {"value": _joined(list(value))}
    return _read(value, whole)


def _joined(chunks: List[Any]) -> Any:
    """Return the answer of a generator: its texts together, or the reply that it ends with; ``None`` for nothing."""
    if not chunks:
        return None
    if all(isinstance(chunk, str) for chunk in chunks):
        return "".join(chunks)
    if isinstance(chunks[-1], dict) and "response" in chunks[-1]:
        return chunks[-1]
    from agenteval.agents.worker.replies import Chunks, reply_of

    return reply_of(Chunks(chunks))


def _read(value: Any, whole: bool) -> Any:
    """Return the reply in a result: JSON follows the agent protocol, other objects are results of frameworks."""
    if isinstance(value, _JSON) or (isinstance(value, dict) and not _has_messages(value)):
        return {"value": value}
    from agenteval.agents.worker.references import fields_of, has, plain
    from agenteval.agents.worker.replies import reply_of

    found = value if isinstance(value, Result) else Result(value)
    fields = found.value if isinstance(found.value, dict) else fields_of(found.value)
    if (
        not whole
        and fields is not None
        and not (_has_messages(fields) or any(has(found.value, name) for name in _ANSWERS))
    ):
        return {"value": plain(fields)}
    reply = dict(reply_of(found.value, found.events))
    if whole:
        return {"value": plain(found.value), "tool_calls": reply["tool_calls"], "usage": reply["usage"]}
    beside = {name: fields.get(name) for name, _ in _BESIDE} if fields else {}
    reply.update({name: beside[name] for name, kind in _BESIDE if beside and isinstance(beside[name], kind)})
    return {"value": plain(reply)}


def _has_messages(value: Mapping[str, Any]) -> bool:
    return "response" not in value and isinstance(value.get("messages"), (list, tuple))


def _target(reference: str) -> AnswerTarget:
    if reference not in _TARGETS:
        _TARGETS[reference] = _made(reference, find(reference))
    return _TARGETS[reference]


def _made(reference: str, found: Any) -> AnswerTarget:
    if isinstance(found, type):
        return _of_class(reference, found)
    if _is_function(found):
        return _of_function(found, takes_text=False)
    from agenteval.agents.worker.adapters import adapter

    prepare = adapter(found)
    if prepare is not None:
        return AnswerTarget(functools.partial(_of_framework, prepare), takes_history=True)
    name = _method_of(type(found))
    if name is None:
        raise TypeError(
            "%r is not callable, and a %s has none of %s" % (reference, type(found).__name__, ", ".join(_METHODS[1:]))
        )
    return _of_function(getattr(found, name), takes_text=name != "__call__")


def _of_class(reference: str, found: type) -> AnswerTarget:
    """Return a class as a target: each conversation gets an instance, which can remember the earlier turns."""
    import inspect

    name = _method_of(found)
    if name is None:
        raise TypeError("%r is a class that has none of %s" % (reference, ", ".join(_METHODS)))
    try:
        inspect.signature(found).bind()
    except TypeError as error:
        raise TypeError(
            "%r cannot be instantiated without arguments (%s); name an instance instead" % (reference, error)
        ) from None
    except ValueError:
        pass  # Some classes that are written in C have no signature.

    def call(request: Request) -> Any:
        key = (reference, request["session"])
        instance = _INSTANCES.get(key)
        if instance is None:
            instance = found()
        target = _of_function(getattr(instance, str(name)), takes_text=name != "__call__")
        if key not in _INSTANCES and request.get("history") and not target.takes_history:
            raise RuntimeError("the instance with the earlier turns is gone: its process ended; run the case again")
        _INSTANCES[key] = instance
        return target.call(request)

    return AnswerTarget(call, takes_history=True, is_class=True)


def _is_function(found: Any) -> bool:
    kinds = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial)
    return isinstance(found, kinds)


def _method_of(kind: type) -> Optional[str]:
    # Not `getattr`: every class can be called.
    defined = {name for base in kind.__mro__ for name, value in vars(base).items() if callable(value)}
    return next((name for name in _METHODS if name in defined), None)


def _of_function(function: Callable[..., Any], *, takes_text: bool) -> AnswerTarget:
    """Return a function as a target: it gets the request, or the input and the parts of the request that it names."""
    names, annotation, keywords = _parameters(function)
    name = names[0] if names else ""
    parts = [part for part in (*names[1:], *keywords) if part in _PARTS]
    is_guess = annotation is None and name not in _TEXTS and not parts
    if annotation is not None:
        takes_text = annotation in (str, "str")
    elif name in _TEXTS or (parts and name not in _REQUESTS):
        takes_text = True
    elif name in _REQUESTS:
        takes_text = False
    if not takes_text:
        return AnswerTarget(function, takes_history=True)

    def call(request: Request) -> Any:
        try:
            return function(request["input"], **{part: request.get(part) for part in parts})
        except (AttributeError, TypeError) as error:
            if is_guess:
                error.args = ("%s; %s" % (error, _GOT_TEXT % (function.__name__, function.__name__)),)
            raise

    return AnswerTarget(call, takes_history="history" in parts)


def _parameters(function: Callable[..., Any]) -> Tuple[List[str], Any, List[str]]:
    """Return a function's positional parameters, the annotation of the first one, and the keyword-only ones.

    ``inspect.signature`` does the same, but its module is slow to import.
    """
    bound = isinstance(function, types.MethodType)
    inner: Any = function.__func__ if isinstance(function, types.MethodType) else function
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    code = getattr(inner, "__code__", None)
    if code is None:
        return [], None, []
    names = list(code.co_varnames[: code.co_argcount])[1 if bound else 0 :]
    keywords = list(code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount])
    try:
        annotation = inner.__annotations__.get(names[0]) if names else None
    except Exception:  # noqa: BLE001 - annotations may name what exists for type checkers only
        annotation = None
    return names, annotation, keywords


async def _of_framework(prepare: Callable[[Request], Any], request: Request) -> Result:
    from agenteval.agents.worker.calls import called

    prepared = prepare(request)
    value, events = await called(prepared.function, prepared.args, prepared.kwargs)
    return Result(prepared.read(value), events)
