"""The library: ``evaluate``, a run as a function call, and the functions on files and results."""

from __future__ import annotations

import asyncio
import inspect
import signal
import tempfile
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Annotated, ParamSpec, TypeVar

from pydantic import Field, InstanceOf

from agenteval.agents.callable import AgentFunction, callable_spec, in_loop
from agenteval.core.arguments import FilePath, Name, checked
from agenteval.core.llm.budget import Limits
from agenteval.core.records import replace
from agenteval.core.runtime import Interrupter, interruptible
from agenteval.core.secrets import masking
from agenteval.core.text import working_directory
from agenteval.gate.verdict import GatePolicy
from agenteval.metrics.registry import GivenMetric, given_metric
from agenteval.results.comparison import Comparison
from agenteval.results.model import Results
from agenteval.results.store import IN_MEMORY, in_full
from agenteval.run.config import Settings
from agenteval.run.context import RunContext, baseline_of, check_baseline, check_not_shard
from agenteval.run.outcome import RunOutcome
from agenteval.run.pipeline import run
from agenteval.suite.model import AgentSpec, Count, Suite


@checked
def read_results(path: FilePath, *, like: InstanceOf[Results] | None = None) -> Results:
    """Read a finished run: a ``results.json``, or a results file of HoloDeck, FluxLoop or promptfoo.

    Args:
        path: the file, or the directory that contains it.
        like: a run of the same suites; cases of another tool's file get the ids of its cases.

    Raises:
        ConfigError: the file does not exist, is damaged, or has an unknown format, or an argument is wrong.
    """
    from agenteval.results.importers.base import suites_of
    from agenteval.results.importers.detect import read_run

    results, _ = read_run(Path(path), suites_of(like) if like else ())
    return results


@checked
def compare(
    current: InstanceOf[Results], baseline: InstanceOf[Results], *, gate: GatePolicy | None = None
) -> Comparison:
    """Compare two finished runs with the statistics of the gate; no file is read and no case runs.

    Args:
        current: the run to check.
        baseline: the earlier run.
        gate: its quarantined cases are excluded; without it every case counts.

    Returns:
        The state, with every compared metric and case. Nothing runs again, so what may be worse is ``suspicious``, or
        ``unproven`` if days alone do not explain it.

    Raises:
        ConfigError: an argument is wrong, the current run is a shard, or the earlier run cannot be a baseline.
    """
    check_not_shard(current, None)
    check_baseline(baseline, None)
    from agenteval.gate.comparison import decide_files
    from agenteval.gate.integrity import with_ids_of
    from agenteval.gate.values import ComparePolicy
    from agenteval.run.compare import comparer_of
    from agenteval.run.resolve.spec import RunSpec

    policy = ComparePolicy(quarantine=gate.quarantine if gate else ()).without_runs()
    then = baseline_of(with_ids_of(current, baseline))
    return decide_files(comparer_of(current, RunSpec(compare=policy), then))


@checked
def load_suites(*paths: FilePath) -> list[Suite]:
    """Load suites of any supported format.

    In a CI run, the ``agenteval.yaml`` of each suite lists the variables that its texts may use (``pass_env``).

    Args:
        *paths: suite files, or directories with suites in the conventional places.

    Raises:
        ConfigError: files are not valid; the error contains every problem of every file.
    """
    from agenteval.core.errors import ConfigError, Problem
    from agenteval.run.config import read_pass_env
    from agenteval.run.resolve import suites
    from agenteval.run.resolve.configurations import Sources

    if not paths:
        return []
    problems: list[Problem] = []
    loaded, places, _ = suites.load_suites(
        Sources(working_directory(), tuple(Path(path) for path in paths)), problems
    )
    for file in places.files:
        with suites.collected(problems):
            read_pass_env(file)
    if problems:
        raise ConfigError(dict.fromkeys(problems))
    return loaded


# Exit statuses above this number are signals.
_SIGNALS = 128


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
) -> Settings:
    # An agent or metric of the caller can change the working directory during the run.
    here = working_directory()
    return Settings(
        suites=tuple(suite if isinstance(suite, Suite) else here / suite for suite in suites),
        config=None if config is None else here / config,
        agent=callable_spec(agent) if callable(agent) else agent,
        baseline=baseline if baseline is None or isinstance(baseline, Results) else here / baseline,
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


P = ParamSpec("P")
R = TypeVar("R")


def _with_arguments_of(
    ask: Callable[P, Settings],
) -> Callable[[Callable[[Settings], R]], Callable[P, R]]:
    def decorate(function: Callable[[Settings], R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **given: P.kwargs) -> R:
            return function(ask(*args, **given))

        returned = inspect.signature(function).return_annotation
        call.__signature__ = inspect.signature(ask).replace(return_annotation=returned)  # type: ignore[attr-defined]
        return call

    return decorate


@_with_arguments_of(_asked)
def evaluate(asked: Settings) -> RunOutcome:
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
async def evaluate_async(asked: Settings) -> RunOutcome:
    """Do the same as ``evaluate`` inside a running event loop, without blocking it.

    The run uses a separate thread and event loop. An asynchronous agent function runs in the caller's loop.
    Cancelling this task ends the run.

    Arguments and errors are those of :func:`evaluate`.
    """
    agent = asked.agent
    if isinstance(agent, AgentSpec) and agent.function is not None:
        agent = replace(agent, function=in_loop(agent.function, asyncio.get_running_loop()))
        asked = replace(asked, agent=agent)
    interrupter = Interrupter()
    with interruptible(interrupter):
        work = asyncio.ensure_future(asyncio.to_thread(_run, asked))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        interrupter.interrupt()
        await asyncio.wait([work])
        raise


def _run(asked: Settings) -> RunOutcome:
    if isinstance(asked.baseline, Results):
        check_baseline(asked.baseline, None)
    with masking(), tempfile.TemporaryDirectory(prefix="agenteval-") as scratch:
        outcome = run(asked, RunContext(scratch=Path(scratch)))
        return replace(outcome, results=in_full(outcome.results, outcome.archive), archive=IN_MEMORY)


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
