"""Checks for extensions, to be called from tests of any framework; a failed check is an ``AssertionError``."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import pickle
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from agenteval.agents.base import Agent, Reply, Request, reply_from_json
from agenteval.core.errors import AgentError, ConfigError
from agenteval.metrics.base import CaseMetric, Metric, Observation, Outcome, outcome_of, requirements
from agenteval.results.model import ToolCall
from agenteval.suite.formats.base import Format, Source
from agenteval.suite.model import Suite

__all__ = ["check_agent", "check_format", "check_metric"]

#: What a metric may require; see ``Metric.requires``.
REQUIRABLE = frozenset({"ground_truth", "retrieval_context", "context", "sources"})

# Given by the run, so they are no options.
_GIVEN = frozenset({"resources", "where"})
_QUESTION = Request(input="hello", case="check", turn=0, session="check#0", case_id="check")


def check_metric(metric: Metric | CaseMetric, observation: Observation) -> Outcome:
    """Check a metric with one reply.

    The metric requires only what can be required, returns a score from 0 to 1, returns the same for the same reply,
    does not change its options, and has options that can be pickled.

    Args:
        metric: an instance. One that asks a model needs ``resources`` that answer.
        observation: a reply to which the metric applies.

    Returns:
        The outcome, for further assertions.

    Raises:
        AssertionError: a check failed; the message names it.
    """
    if isinstance(metric, type):
        raise AssertionError(f"{metric.__name__} is a class; give an instance")
    name = type(metric).__name__
    _check_requirements(name, metric, observation)
    before = _pickled_options(name, metric)
    first, second = (_measured(name, metric, observation) for _ in range(2))
    if first != second:
        raise AssertionError(f"{name} measured the same reply twice and returned {first}, then {second}")
    if _pickled_options(name, metric) != before:
        raise AssertionError(f"{name} changed its options; `measure` must not change the metric")
    return first


def check_agent(agent: Agent, questions: Sequence[Request] = (_QUESTION,)) -> list[Reply]:
    """Check an agent with some questions.

    The agent starts, answers each question in a session of its own, answers all of them at once too, returns replies
    that can be written as JSON, and can be closed twice.

    Args:
        agent: an instance that has not been started.
        questions: what to ask; answers need not be the same each time.

    Returns:
        The replies to the questions, asked one after the other.

    Raises:
        AssertionError: a check failed; the message names it.
    """
    return asyncio.run(_checked_agent(type(agent).__name__, agent, questions))


def check_format(format_: Format, files: Mapping[str, str], *, broken: Mapping[str, str] | None = None) -> Suite:
    """Check a suite format with an example.

    The format recognises the file at its usual place, loads it twice to the same suite, gives every case an id of its
    own and at least one turn, and reports broken files as problems with file and line, never by another exception.

    Args:
        format_: the format.
        files: path → content, from a project's directory; the first one is the suite.
        broken: path → content of suites that have a mistake; each is read beside ``files``.

    Returns:
        The suite, for further assertions.

    Raises:
        AssertionError: a check failed; the message names it.
    """
    name = format_.name
    if "." not in name:
        raise AssertionError(f"{name!r} needs a dot, like 'acme.{name}': names without a dot are built in")
    with tempfile.TemporaryDirectory(prefix="agenteval-") as directory:
        for path, content in files.items():
            _write(Path(directory, path), content)
        first = next(iter(files))
        if not any(Path(directory, first) in Path(directory).glob(pattern) for pattern in format_.patterns):
            raise AssertionError(f"{name}: no pattern of {', '.join(format_.patterns)} finds {first!r}")
        suite = _loaded(format_, Source(Path(directory, first), first))
        if _loaded(format_, Source(Path(directory, first), first)).fingerprint != suite.fingerprint:
            raise AssertionError(f"{name} loaded {first!r} twice and made two different suites")
        _check_cases(name, suite)
        for path, content in (broken or {}).items():
            _write(Path(directory, path), content)
            _check_problems(format_, Source(Path(directory, path), path))
        _check_garbage(format_, Source(Path(directory, first), first))
    return suite


def _write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")


def _loaded(format_: Format, source: Source) -> Suite:
    if not format_.matches(source):
        raise AssertionError(f"{format_.name} does not match {source.name!r}")
    try:
        suite = format_.load(source)
    except Exception as error:
        raise AssertionError(f"{format_.name} cannot load {source.name!r}: {_raised(error)}") from error
    if not isinstance(suite, Suite):
        raise AssertionError(f"{format_.name} loaded {type(suite).__name__}; `load` must return a Suite")
    return suite


def _check_cases(name: str, suite: Suite) -> None:
    ids = [case.id for case in suite.cases]
    repeated = sorted({id_ for id_ in ids if ids.count(id_) > 1})
    if repeated:
        raise AssertionError(f"{name}: several cases have the id {repeated[0]!r}")
    empty = [case.id for case in suite.cases if not case.turns]
    if empty:
        raise AssertionError(f"{name}: case {empty[0]!r} has no turn")


def _check_problems(format_: Format, source: Source) -> None:
    try:
        format_.load(source)
    except ConfigError as error:
        for problem in error.problems:
            if problem.file != source.name or problem.line is None:
                raise AssertionError(f"{format_.name}: the problem '{problem}' has no file or no line") from error
    except Exception as error:
        raise AssertionError(f"{format_.name}: {source.name!r} raises {_raised(error)}; raise ConfigError") from error
    else:
        raise AssertionError(f"{format_.name} loads {source.name!r}, which has a mistake")


def _check_garbage(format_: Format, source: Source) -> None:
    """Any bytes are a suite or a ``ConfigError``, also the beginning of a file."""
    content = source.path.read_bytes()
    for piece in (b"", b"\x00\xff", content[: len(content) // 2], content[: len(content) // 3]):
        source.path.write_bytes(piece)
        try:
            if format_.matches(source):
                format_.load(source)
        except ConfigError:
            continue
        except Exception as error:
            raise AssertionError(
                f"{format_.name}: a damaged file raises {_raised(error)}; raise ConfigError"
            ) from error


async def _checked_agent(name: str, agent: Agent, questions: Sequence[Request]) -> list[Reply]:
    try:
        await agent.start()
    except ConfigError as error:
        raise AssertionError(f"{name} does not start: {error}") from error
    try:
        replies = [await _answered(name, agent, question) for question in questions]
        await asyncio.gather(*(_answered(name, agent, question) for question in questions))
    finally:
        await agent.close()
    try:
        await agent.close()
    except Exception as error:
        raise AssertionError(f"{name} cannot be closed twice: {_raised(error)}") from error
    return replies


async def _answered(name: str, agent: Agent, question: Request) -> Reply:
    session = agent.session()
    try:
        reply = await session.send(question)
    except Exception as error:
        raise AssertionError(f"{name} does not answer {question.input!r}: {_raised(error)}") from error
    finally:
        await session.end()
    return _checked_reply(name, reply)


def _checked_reply(name: str, reply: object) -> Reply:
    if isinstance(reply, str | dict):
        # As agents in a worker process may answer.
        try:
            reply = reply_from_json(reply)
        except AgentError as error:
            raise AssertionError(f"{name} returned an invalid reply: {error}") from error
    if not isinstance(reply, Reply):
        raise AssertionError(f"{name} returned {type(reply).__name__}; `send` must return a Reply, a text or a dict")
    if not isinstance(reply.response, str):
        raise AssertionError(f"{name} returned a response of type {type(reply.response).__name__}; it must be a text")
    others = [type(call).__name__ for call in reply.tool_calls if not isinstance(call, ToolCall)]
    if others:
        raise AssertionError(f"{name} returned tool calls of type {others[0]}; give ToolCall objects")
    try:
        json.dumps([dict(reply.metadata), [call.model_dump() for call in reply.tool_calls]], allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise AssertionError(f"{name} returned a reply that JSON cannot express: {error}") from error
    return reply


def _check_requirements(name: str, metric: Metric | CaseMetric, observation: Observation) -> None:
    required = requirements(metric)
    if not isinstance(required, frozenset):
        raise AssertionError(f"{name}.requires is a {type(required).__name__}; it must be a frozenset of names")
    unknown = sorted(required - REQUIRABLE)
    if unknown:
        possible = ", ".join(sorted(REQUIRABLE))
        raise AssertionError(f"{name}.requires names {unknown[0]!r}; possible names: {possible}")
    missing = sorted(field for field in required if not getattr(observation, field))
    if missing:
        raise AssertionError(f"{name} requires {', '.join(missing)}; give an observation that has it")


def _pickled_options(name: str, metric: Metric | CaseMetric) -> dict[str, Any]:
    """The options after they were pickled and read back."""
    if not is_dataclass(metric):
        return {}
    options = {item.name: getattr(metric, item.name) for item in fields(metric) if item.name not in _GIVEN}
    for option, value in options.items():
        try:
            same = pickle.loads(pickle.dumps(value)) == value  # noqa: S301 - our own bytes
        except Exception as error:
            raise AssertionError(f"{name}.{option} cannot be pickled: {_raised(error)}") from error
        if not same:
            raise AssertionError(f"{name}.{option} is not the same after it was pickled and read back")
    copied: dict[str, Any] = pickle.loads(pickle.dumps(options))  # noqa: S301 - our own bytes
    return copied


def _measured(name: str, metric: Metric | CaseMetric, observation: Observation) -> Outcome:
    try:
        outcome = asyncio.run(_measure(metric, observation))
    except Exception as error:
        raise AssertionError(f"{name} failed: {_raised(error)}") from error
    if outcome is None:
        raise AssertionError(f"{name} does not apply to this observation (it returned None)")
    if not (math.isfinite(outcome.score) and 0 <= outcome.score <= 1):
        raise AssertionError(f"{name} returned the score {outcome.score}; it must be from 0 to 1")
    try:
        json.dumps(dict(outcome.details or {}), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise AssertionError(f"{name} returned details that JSON cannot express: {error}") from error
    return outcome


async def _measure(metric: Any, observation: Observation) -> Outcome | None:
    if hasattr(metric, "measure_all"):
        again = replace(observation, iteration=observation.iteration + 1)
        found = metric.measure_all((observation, again))
        outcomes = await found if inspect.isawaitable(found) else found
        if len(outcomes) != 2:
            raise ValueError(f"`measure_all` returned {len(outcomes)} outcomes for 2 observations")
        return outcome_of(outcomes[0])
    found = metric.measure(observation)
    return outcome_of(await found if inspect.isawaitable(found) else found)


def _raised(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
