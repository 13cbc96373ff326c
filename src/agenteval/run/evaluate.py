"""``evaluate``: a run as a function call, without an exit or output to a terminal."""

from __future__ import annotations

import asyncio
import inspect
import signal
import tempfile
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Annotated, ParamSpec, TypeVar

from pydantic import Field, InstanceOf

from agenteval.agents.callable import AgentFunction, callable_spec, in_loop
from agenteval.core.arguments import FilePath, Name, checked
from agenteval.core.llm.budget import Limits
from agenteval.core.masking import masking
from agenteval.core.paths import working_directory
from agenteval.core.process.interrupt import Interrupter, interruptible
from agenteval.metrics.given import GivenMetric, given_metric
from agenteval.results.archive import InMemory, in_full
from agenteval.results.model import Results
from agenteval.run.baseline import Search, baseline_of
from agenteval.run.context import RunContext
from agenteval.run.outcome import RunOutcome
from agenteval.run.pipeline import run
from agenteval.run.settings import Settings
from agenteval.suite.model import AgentSpec, Count, Suite

# Exit statuses above this number are signals.
_SIGNALS = 128


@dataclass(frozen=True)
class _Asked:
    """The arguments of ``evaluate``; a baseline of the caller is beside the settings, which name files."""

    settings: Settings
    baseline: Results | None


@checked
def _asked(
    *suites: FilePath | Suite,
    agent: Name | AgentSpec | AgentFunction | None = None,
    config: FilePath | None = None,
    baseline: FilePath | InstanceOf[Results] | None = None,
    iterations: Count | None = None,
    filter: str | None = None,  # noqa: A002 - named as the option
    tags: Iterable[str] = (),
    metrics: Iterable[GivenMetric] = (),
    limits: Limits | None = None,
    seed: Annotated[int, Field(ge=0)] | None = None,
    out: FilePath | None = None,
    progress: bool = False,
) -> _Asked:
    """The arguments of ``evaluate`` and ``evaluate_async``.

    Raises:
        ConfigError: with every argument that is wrong.
    """
    # An agent or metric of the caller can change the working directory during the run.
    here = working_directory()
    settings = Settings(
        suites=tuple(suite if isinstance(suite, Suite) else here / suite for suite in suites),
        config=None if config is None else here / config,
        agent=callable_spec(agent) if callable(agent) else agent,
        baseline=None if baseline is None or isinstance(baseline, Results) else here / baseline,
        iterations=iterations,
        filter=filter,
        tags=tuple(tags),
        metrics=tuple(map(given_metric, metrics)),
        max_llm_calls=limits.max_calls if limits else None,
        max_cost_usd=limits.max_cost_usd if limits else None,
        seed=seed,
        out=None if out is None else here / out,
        quiet=not progress,
    )
    return _Asked(settings, baseline if isinstance(baseline, Results) else None)


P = ParamSpec("P")
R = TypeVar("R")


def _with_arguments_of(
    ask: Callable[P, _Asked],
) -> Callable[[Callable[[_Asked], R]], Callable[P, R]]:
    """Give a function of the asked run the arguments that describe the run."""

    def decorate(function: Callable[[_Asked], R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **given: P.kwargs) -> R:
            return function(ask(*args, **given))

        returned = inspect.signature(function).return_annotation
        call.__signature__ = inspect.signature(ask).replace(return_annotation=returned)  # type: ignore[attr-defined]
        return call

    return decorate


@_with_arguments_of(_asked)
def evaluate(asked: _Asked) -> RunOutcome:
    """Run suites, compare with the baseline, and let the gate decide.

    A signal interrupts the run and then has its usual effect: Ctrl-C raises ``KeyboardInterrupt``. In a thread other
    than the main thread, no signal is handled.

    Args:
        *suites: files, directories or suites; by default those in the conventional places of the working directory.
        agent: replaces the agents that suites name: a specification as for ``--agent``, or a function.
        config: the ``agenteval.yaml``; by default the nearest one.
        baseline: the run to compare with, or its file.
        iterations: number of times every case runs.
        filter: run only cases whose name or id contains this text.
        tags: run only cases with one of these tags.
        metrics: metrics to add to every case.
        limits: limits of the calls and cost of models.
        seed: the random seed.
        out: a directory for the reports that ``agenteval run`` writes; none are written by default.
        progress: show the progress on standard error.

    Raises:
        ConfigError: a suite, the configuration or an argument is invalid; no case was run.
        InfrastructureError: the reports or the journal cannot be written, or the working directory is gone.
        RuntimeError: an event loop is running in this thread.
    """
    if _in_event_loop():
        raise RuntimeError("evaluate() cannot be called in a running event loop; use `await evaluate_async(...)`")
    outcome = _run(asked)
    if outcome.exit_status > _SIGNALS:
        signal.raise_signal(outcome.exit_status - _SIGNALS)
    return outcome


@_with_arguments_of(_asked)
async def evaluate_async(asked: _Asked) -> RunOutcome:
    """Do the same as ``evaluate`` inside a running event loop, without blocking it.

    The run uses a separate thread and event loop. An asynchronous agent function runs in the caller's loop.
    Cancelling this task ends the run.

    Arguments and errors are those of :func:`evaluate`.
    """
    agent = asked.settings.agent
    if isinstance(agent, AgentSpec) and agent.function is not None:
        agent = replace(agent, function=in_loop(agent.function, asyncio.get_running_loop()))
        asked = replace(asked, settings=replace(asked.settings, agent=agent))
    interrupter = Interrupter()
    with interruptible(interrupter):
        work = asyncio.ensure_future(asyncio.to_thread(_run, asked))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        interrupter.interrupt()
        await asyncio.wait([work])
        raise


@dataclass(frozen=True)
class _GivenBaseline:
    """A baseline that the caller passes as a value."""

    results: Results

    def search(self, _: Collection[str]) -> Search:
        """Return the run."""
        return Search(baseline_of(self.results))


def _run(asked: _Asked) -> RunOutcome:
    """Run with a temporary journal, unless a report directory is given."""
    source = None if asked.baseline is None else _GivenBaseline(asked.baseline)
    with masking(), tempfile.TemporaryDirectory(prefix="agenteval-") as scratch:
        outcome = run(asked.settings, RunContext(baseline=source, scratch=Path(scratch)))
        return replace(outcome, results=in_full(outcome.results, outcome.archive), archive=InMemory())


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
