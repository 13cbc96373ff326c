"""Checks of extensions, for tests in any framework; a failed check raises ``AssertionError``."""

from __future__ import annotations

import asyncio
import inspect
import math
import pickle
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, cast

from pydantic import AfterValidator, Field, PlainValidator

from agenteval.agents.base import Agent, Reply, Request
from agenteval.agents.callable import AgentFunction, CallableAgent, callable_spec
from agenteval.agents.reading import checked_reply
from agenteval.core.arguments import checked, described, problems
from agenteval.core.errors import AgentError, ConfigError, Problem
from agenteval.metrics.base import (
    CaseMetric,
    Metric,
    Observation,
    Outcome,
    checked_outcome,
    metric_problem,
    outcome_list,
    requirements,
)
from agenteval.suite.formats.base import Format, Source
from agenteval.suite.model import Suite

__all__ = ["check_agent", "check_format", "check_metric"]

# The run provides these fields, so they are not options.
_GIVEN = frozenset({"resources", "where"})
_QUESTION = Request(input="hello", case="check", turn=0, session="check#0", case_id="check")


def _assertion(problems: Iterable[Problem]) -> AssertionError:
    return AssertionError("\n".join(map(str, problems)))


_checked = partial(checked, raises=_assertion)


def _is_metric(metric: Any) -> Any:
    problem = metric_problem(metric)
    if problem is not None:
        raise ValueError(problem)
    return metric


def _is_agent(agent: Any) -> Any:
    is_agent = all(callable(getattr(agent, name, None)) for name in ("start", "session", "close"))
    if isinstance(agent, type) or not (is_agent or callable(agent)):
        raise ValueError(f"must be an agent or a function, not {described(agent)}")
    return agent


def _is_inside(path: str) -> str:
    if "\0" in path or PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts or path in {"", "."}:
        raise ValueError("must be the path of a file inside a project, such as 'evals/suite.txt'")
    return path


_Files = Mapping[Annotated[str, AfterValidator(_is_inside)], str]


@_checked
def check_metric(
    metric: Annotated[Metric | CaseMetric, PlainValidator(_is_metric)], observation: Observation
) -> Outcome:
    """Check a metric with one reply.

    The metric must require only fields that can be required, return a score from 0 to 1, return the same score for
    the same reply, keep its options unchanged, and have options that can be pickled.

    Args:
        metric: an instance. A metric that calls a model needs ``resources`` with replies.
        observation: a reply to which the metric applies.

    Returns:
        The outcome, for further assertions.

    Raises:
        AssertionError: a check failed, or an argument is wrong; the message names it.
    """
    name = type(metric).__name__
    _check_observation(name, metric, observation)
    before = _pickled_options(name, metric)
    first, second = (_measured(name, metric, observation) for _ in range(2))
    if first != second:
        raise AssertionError(f"{name} measured the same reply twice and returned {first}, then {second}")
    if _pickled_options(name, metric) != before:
        raise AssertionError(f"{name} changed its options; `measure` must not change the metric")
    return first


@_checked
def check_agent(
    agent: Annotated[Agent | AgentFunction, PlainValidator(_is_agent)],
    questions: Annotated[Sequence[Request], Field(min_length=1)] = (_QUESTION,),
) -> list[Reply]:
    """Check an agent with some questions.

    The agent must start, answer each question in a separate session, answer all questions at the same time, return
    replies that can be written as JSON, and accept being closed twice.

    Args:
        agent: an instance that has not been started, or a function that ``evaluate`` could call.
        questions: the questions; answers may differ each time.

    Returns:
        The replies to the questions, which were asked one after the other.

    Raises:
        AssertionError: a check failed, or an argument is wrong; the message names it.
    """
    if callable(getattr(agent, "session", None)):
        return asyncio.run(_checked_agent(type(agent).__name__, cast("Agent", agent), questions))
    spec = callable_spec(cast("AgentFunction", agent))
    return asyncio.run(_checked_agent(str(spec.target), CallableAgent(spec), questions))


@_checked
def check_format(
    format_: Format, files: Annotated[_Files, Field(min_length=1)], *, broken: _Files | None = None
) -> Suite:
    """Check a suite format with an example.

    The format must recognise the file at its usual place, load it twice to the same suite, give every case a unique
    id and at least one turn, and report broken files as problems with file and line, never by another exception.

    Args:
        format_: the format.
        files: file contents by path relative to a project's directory; the first file is the suite.
        broken: contents of invalid suites by path; each is read together with ``files``.

    Returns:
        The suite, for further assertions.

    Raises:
        AssertionError: a check failed, or an argument is wrong; the message names it.
    """
    name = format_.name
    if "." not in name:
        raise AssertionError(f"{name!r} needs a dot, like 'acme.{name}': names without a dot are built in")
    with tempfile.TemporaryDirectory(prefix="agenteval-") as directory:
        for path, content in files.items():
            _write(Path(directory, path), content)
        first = next(iter(files))
        if not any(_finds(pattern, Path(directory), first, name) for pattern in format_.patterns):
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


def _finds(pattern: str, directory: Path, file: str, name: str) -> bool:
    try:
        return Path(directory, file) in directory.glob(pattern)
    except (ValueError, NotImplementedError) as error:
        raise AssertionError(f"{name}: the pattern {pattern!r} is not a relative glob: {error}") from error


def _loaded(format_: Format, source: Source) -> Suite:
    try:
        matches = format_.matches(source)
    except Exception as error:
        raise AssertionError(f"{format_.name}: `matches` raises {_raised(error)}; it must not raise") from error
    if not matches:
        raise AssertionError(f"{format_.name} does not match {source.name!r}")
    try:
        suite: object = format_.load(source)
    except Exception as error:
        raise AssertionError(f"{format_.name} cannot load {source.name!r}: {_raised(error)}") from error
    if not isinstance(suite, Suite):
        raise AssertionError(f"{format_.name} loaded {type(suite).__name__}; `load` must return a Suite")
    wrong = problems(suite, Suite, "suite")
    if wrong:
        raise AssertionError(f"{format_.name} loaded a broken suite: {'; '.join(map(str, wrong))}")
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
    """Check that any bytes, such as the beginning of a file, are a suite or a ``ConfigError``."""
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
    except (Exception, SystemExit) as error:
        raise AssertionError(f"{name} does not start: {_raised(error)}; raise ConfigError") from error
    try:
        replies = [await _answered(name, agent, question) for question in questions]
        await asyncio.gather(*(_answered(name, agent, question) for question in questions))
    finally:
        await _closed(name, agent, "cannot be closed")
    await _closed(name, agent, "cannot be closed twice")
    return replies


async def _closed(name: str, agent: Agent, problem: str) -> None:
    try:
        await agent.close()
    except (Exception, SystemExit) as error:
        raise AssertionError(f"{name} {problem}: {_raised(error)}") from error


async def _answered(name: str, agent: Agent, question: Request) -> Reply:
    try:
        session = agent.session()
        try:
            reply = await session.send(question)
        finally:
            await session.end()
    except (Exception, SystemExit) as error:
        raise AssertionError(f"{name} does not answer {question.input!r}: {_raised(error)}") from error
    try:
        return checked_reply(reply, question)
    except AgentError as error:
        raise AssertionError(f"{name} returned an invalid reply: {error}") from error


def _check_observation(name: str, metric: Metric | CaseMetric, observation: Observation) -> None:
    missing = sorted(field for field in requirements(metric) if not getattr(observation, field))
    if missing:
        raise AssertionError(f"{name} requires {', '.join(missing)}; give an observation that has it")


def _pickled_options(name: str, metric: Metric | CaseMetric) -> dict[str, Any]:
    """Return the options after pickling and unpickling."""
    if not is_dataclass(metric):
        return {}
    options = {item.name: getattr(metric, item.name) for item in fields(metric) if item.name not in _GIVEN}
    for option, value in options.items():
        try:
            same = pickle.loads(pickle.dumps(value)) == value  # noqa: S301 - our own bytes
        except Exception as error:
            raise AssertionError(f"{name}.{option} cannot be pickled: {_raised(error)}") from error
        if not same:
            raise AssertionError(f"{name}.{option} changes when it is pickled and unpickled")
    copied: dict[str, Any] = pickle.loads(pickle.dumps(options))  # noqa: S301 - our own bytes
    return copied


def _measured(name: str, metric: Metric | CaseMetric, observation: Observation) -> Outcome:
    try:
        outcome = asyncio.run(_measure(metric, observation))
    except (Exception, SystemExit) as error:
        raise AssertionError(f"{name} failed: {_raised(error)}") from error
    if outcome is None:
        raise AssertionError(f"{name} does not apply to this observation (it returned None)")
    if not (math.isfinite(outcome.score) and 0 <= outcome.score <= 1):
        raise AssertionError(f"{name} returned the score {outcome.score}; it must be from 0 to 1")
    return outcome


async def _measure(metric: Any, observation: Observation) -> Outcome | None:
    if hasattr(metric, "measure_all"):
        again = replace(observation, iteration=observation.iteration + 1)
        found = metric.measure_all((observation, again))
        outcomes = outcome_list(await found if inspect.isawaitable(found) else found, 2)
        return checked_outcome(outcomes[0])
    found = metric.measure(observation)
    return checked_outcome(await found if inspect.isawaitable(found) else found)


def _raised(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
