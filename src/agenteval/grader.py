"""The interface of code graders and metrics: ``from agenteval.grader import GraderContext, GraderResult``.

Metrics of ``agenteval.yaml`` import ``Observation`` and ``Outcome`` from here.

Graders written for HoloDeck import the same names from ``holodeck.lib.test_runner.code_grader``; the
worker process provides that module if HoloDeck is not installed. This file runs there under the
user's Python (3.8 or newer) and needs only the standard library.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import math
from dataclasses import dataclass, field
from decimal import Decimal
from numbers import Real
from typing import Any, Callable, Iterable, Mapping, Optional, Tuple, Union


@dataclass(frozen=True)
class ToolInvocation:
    """One tool call of the agent. ``bytes`` is the size of the result as text."""

    name: str
    args: Mapping[str, Any] = field(default_factory=dict)
    result: Any = None
    bytes: int = 0
    duration_ms: Optional[float] = None
    error: Optional[str] = None


@dataclass(frozen=True)
class GraderContext:
    """One turn for a grader; deeply immutable.

    Attributes:
        tool_invocations: the tool calls of this turn, in order.
        retrieval_context: the passages of this turn; ``None`` without any.
        turn_index: 0 for the first or only turn.
        turn_config: the turn's ``turn_config``; empty if it has none.
    """

    turn_input: str
    agent_response: str
    ground_truth: Optional[str] = None
    tool_invocations: Tuple[ToolInvocation, ...] = ()
    retrieval_context: Optional[Tuple[str, ...]] = None
    turn_index: int = 0
    test_case_name: Optional[str] = None
    turn_config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class GraderResult:
    """The result of a grader.

    Attributes:
        score: 0 to 1.
        passed: the verdict; ``None`` applies the threshold (0.5 if the suite has none).
        reason: a sentence for the reports.
        details: additional values, as JSON.
    """

    score: float
    passed: Optional[bool] = None
    reason: Optional[str] = None
    details: Optional[Mapping[str, Any]] = None


Outcome = GraderResult


@dataclass(frozen=True)
class Usage:
    """Tokens and cost of an answer; ``None`` if the agent does not report them."""

    input_tokens: Optional[int] = None
    output_tokens: Optional[int] = None
    cost_usd: Optional[float] = None


@dataclass(frozen=True)
class Observation:
    """One answer for a metric; deeply immutable.

    Attributes:
        retrieval_context: the passages of this turn; ``None`` without any.
        tool_calls: the tool calls of this turn, in order.
        latency_ms: latency of the answer, in milliseconds.
        context: texts of the turn's files; ``None`` if it has none.
        case: name of the case.
        turn: number of the turn, from 0.
        iteration: number of the iteration, from 0.
        config: the turn's configuration for graders.
        raised: the exception with which a tool under test refused.
        trace: the record of a recorded trace.
    """

    input: str
    response: str
    ground_truth: Optional[str] = None
    retrieval_context: Optional[Tuple[str, ...]] = None
    tool_calls: Tuple[ToolInvocation, ...] = ()
    latency_ms: Optional[float] = None
    usage: Optional[Usage] = None
    context: Optional[Tuple[str, ...]] = None
    case: str = ""
    turn: int = 0
    iteration: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)
    raised: Optional[str] = None
    trace: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sources(self) -> Tuple[str, ...]:
        """The sources of the answer: texts of files, then retrieved passages."""
        return (*(self.context or ()), *(self.retrieval_context or ()))


Grader = Callable[[GraderContext], Union[GraderResult, bool, float]]


def check(reference: str) -> bool:
    """Check that ``module:callable`` exists.

    Raises:
        ImportError, AttributeError, TypeError: the callable is missing; importing its module can raise others.
    """
    resolve(reference)
    return True


def resolve(reference: str) -> Grader:
    """Return the callable at ``module:callable``."""
    module, _, name = reference.partition(":")
    target = getattr(importlib.import_module(module), name)
    if not callable(target):
        raise TypeError("%r is not callable" % reference)
    return target  # type: ignore[no-any-return]


async def grade(reference: str, turn: Mapping[str, Any]) -> Mapping[str, Any]:
    """Call a grader.

    Args:
        reference: ``module:callable``; asynchronous callables are awaited.
        turn: the fields of ``GraderContext`` as JSON.

    Returns:
        The fields of ``GraderResult`` as JSON.

    Raises:
        TypeError: the return value has the wrong type; also any exception of the grader.
    """
    grader = resolve(reference)
    made = context(turn)
    value = await asyncio.get_running_loop().run_in_executor(None, grader, made)
    return result(await value if inspect.isawaitable(value) else value)


def context(turn: Mapping[str, Any]) -> GraderContext:
    """Return the context of a turn, immutable at every level."""
    return GraderContext(
        turn_input=turn["turn_input"],
        agent_response=turn["agent_response"],
        ground_truth=turn.get("ground_truth"),
        tool_invocations=tool_invocations(turn.get("tool_invocations")),
        retrieval_context=texts(turn.get("retrieval_context")),
        turn_index=turn.get("turn_index", 0),
        test_case_name=turn.get("test_case_name"),
        turn_config=frozen(turn.get("turn_config") or {}),
    )


def tool_invocations(calls: Optional[Iterable[Mapping[str, Any]]]) -> Tuple[ToolInvocation, ...]:
    """Return the tool calls of an answer, immutable at every level."""
    return tuple(
        ToolInvocation(
            name=call["name"],
            args=frozen(call.get("args") or {}),
            result=frozen(call.get("result")),
            bytes=size(call.get("result")),
            duration_ms=call.get("duration_ms"),
            error=call.get("error"),
        )
        for call in calls or ()
    )


def texts(value: Optional[Iterable[str]]) -> Optional[Tuple[str, ...]]:
    """Return a list of texts as an immutable tuple; ``None`` stays ``None``."""
    return None if value is None else tuple(value)


class FrozenDict(dict):  # type: ignore[type-arg] # Python 3.8 cannot subscript it here
    """An immutable dict, for ``isinstance`` and ``json`` in graders."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("a grader cannot change its input")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse


class FrozenList(list):  # type: ignore[type-arg]
    """An immutable list, for ``isinstance``, ``json`` and ``==`` in graders."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("a grader cannot change its input")

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse


def frozen(value: Any) -> Any:
    """Return an immutable copy of a JSON value."""
    if isinstance(value, dict):
        return FrozenDict({key: frozen(item) for key, item in value.items()})
    return FrozenList([frozen(item) for item in value]) if isinstance(value, list) else value


def size(value: Any) -> int:
    """Return the size in bytes of a tool's result as text."""
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
    return len(text.encode("utf-8", "replace"))


def result(value: Any, called: str = "grader") -> Mapping[str, Any]:
    """Convert the return value of a grader or metric to the fields of ``GraderResult``.

    ``True`` is 1 and passed, ``False`` is 0 and failed, a number is the score. NumPy's booleans and numbers count as
    Python's; other values, such as ``"false"``, are never converted. A result is recognised by its fields, because it
    may be HoloDeck's class.

    Raises:
        TypeError: a value has the wrong type.
        ValueError: the score is not finite.
    """
    value = plain(value)
    if isinstance(value, bool):
        return {"score": float(value), "passed": value, "reason": None, "details": None}
    if isinstance(value, (int, float)):
        return {"score": number(value), "passed": None, "reason": None, "details": None}
    if hasattr(value, "score") and hasattr(value, "passed"):
        details = getattr(value, "details", None)
        reason = getattr(value, "reason", None)
        return {
            "score": number(value.score),
            "passed": None if value.passed is None else boolean(value.passed, "passed"),
            "reason": None if reason is None else str(reason),
            "details": None if details is None else dict(details),
        }
    raise TypeError(
        "the %s returned %s; it must return %s, a boolean or a number"
        % (called, type(value).__name__, "a GraderResult" if called == "grader" else "an Outcome")
    )


def plain(value: Any) -> Any:
    """Convert NumPy scalars and arrays to plain Python values."""
    convert = getattr(value, "tolist", None)
    return convert() if callable(convert) and not isinstance(value, type) else value


def boolean(value: Any, name: str) -> bool:
    """Return a verdict.

    Raises:
        TypeError: it is not a boolean.
    """
    found = plain(value)
    if not isinstance(found, bool):
        raise TypeError("%s is %r; it must be True or False" % (name, found))
    return found


def number(value: Any) -> float:
    """Return a score as a finite float, as JSON requires.

    Raises:
        TypeError: it is not a number; a text such as ``"0.9"`` is not.
        ValueError: it is not finite.
    """
    found = plain(value)
    if not isinstance(found, (Real, Decimal)):
        raise TypeError("the score is %r, not a number from 0 to 1" % (found,))
    score = float(found)
    if not math.isfinite(score):
        raise ValueError("the score is %r, not a number from 0 to 1" % score)
    return score
