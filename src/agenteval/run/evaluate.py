"""``evaluate``: one run as a function call, without a report, a message or an exit."""

from __future__ import annotations

import asyncio
import signal
import tempfile
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from agenteval.agents.callable import AgentFunction, callable_spec, in_loop
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.llm.budget import Limits
from agenteval.core.process.interrupt import Interrupter, handlers_restored, interruptible
from agenteval.metrics.base import CaseMetric, Metric
from agenteval.metrics.given import given_metric
from agenteval.results.archive import InMemory, in_full
from agenteval.results.model import Results
from agenteval.run.baseline import FoundBaseline, Search
from agenteval.run.context import RunContext
from agenteval.run.outcome import RunOutcome
from agenteval.run.pipeline import run
from agenteval.run.settings import Settings
from agenteval.suite.model import AgentSpec, MetricConfig, Suite

# Exit statuses above are signals.
_SIGNALS = 128


def evaluate(
    *suites: str | Path | Suite,
    agent: str | AgentSpec | AgentFunction | None = None,
    config: str | Path | None = None,
    baseline: str | Path | Results | None = None,
    iterations: int | None = None,
    filter: str | None = None,  # noqa: A002 - named as the option
    tags: Iterable[str] = (),
    metrics: Iterable[Metric | CaseMetric | MetricConfig] = (),
    limits: Limits | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
    progress: bool = False,
) -> RunOutcome:
    """Run suites, compare with the baseline, and let the gate decide.

    A signal ends the run and takes effect as without it: Ctrl-C raises ``KeyboardInterrupt``. In a thread other than
    the main one, no signal is handled.

    Args:
        *suites: files, directories or suites; those at the conventional places of the working directory by default.
        agent: answers instead of the agents that suites name: as ``--agent``, a specification, or a function of this
            process.
        config: the ``agenteval.yaml``; the nearest one by default.
        baseline: the run to compare with, or its file.
        iterations: how often every case runs.
        filter: runs only cases whose name or id contains this text.
        tags: runs only cases with one of these tags.
        metrics: measured on every case besides its own.
        limits: what models may cost.
        seed: of everything random.
        out: a directory for the reports that ``agenteval run`` writes; none are written by default.
        progress: show the progress on standard error.

    Raises:
        ConfigError: a suite, the configuration or an argument is wrong; nothing was run.
        InfrastructureError: the reports or the journal cannot be written.
        RuntimeError: an event loop is running in this thread.
    """
    if _in_event_loop():
        raise RuntimeError("evaluate() cannot be called in a running event loop; use `await evaluate_async(...)`")
    settings = _settings(
        suites=suites,
        agent=agent,
        config=config,
        baseline=baseline,
        iterations=iterations,
        filter_=filter,
        tags=tags,
        metrics=metrics,
        limits=limits,
        seed=seed,
        out=out,
        progress=progress,
    )
    with handlers_restored():
        outcome = _run(settings, baseline)
    if outcome.exit_status > _SIGNALS:
        signal.raise_signal(outcome.exit_status - _SIGNALS)
    return outcome


async def evaluate_async(
    *suites: str | Path | Suite,
    agent: str | AgentSpec | AgentFunction | None = None,
    config: str | Path | None = None,
    baseline: str | Path | Results | None = None,
    iterations: int | None = None,
    filter: str | None = None,  # noqa: A002 - named as the option
    tags: Iterable[str] = (),
    metrics: Iterable[Metric | CaseMetric | MetricConfig] = (),
    limits: Limits | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
    progress: bool = False,
) -> RunOutcome:
    """Do the same as ``evaluate`` in a running event loop, which stays free meanwhile.

    The run has a thread and an event loop of its own. An asynchronous agent function runs in the caller's loop.
    Cancelling this task ends the run.

    Args and errors are those of :func:`evaluate`.
    """
    loop = asyncio.get_running_loop()
    if callable(agent):
        agent = callable_spec(in_loop(agent, loop))
    settings = _settings(
        suites=suites,
        agent=agent,
        config=config,
        baseline=baseline,
        iterations=iterations,
        filter_=filter,
        tags=tags,
        metrics=metrics,
        limits=limits,
        seed=seed,
        out=out,
        progress=progress,
    )
    interrupter = Interrupter()
    with interruptible(interrupter):
        work = asyncio.ensure_future(asyncio.to_thread(_run, settings, baseline))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        interrupter.interrupt()
        await asyncio.wait([work])
        raise


@dataclass(frozen=True)
class _GivenBaseline:
    """A run of the caller, as a source of baselines."""

    results: Results

    def search(self, _: Collection[str]) -> Search:
        """Return the run."""
        return Search(FoundBaseline(self.results))


def _settings(
    *,
    suites: Iterable[str | Path | Suite],
    agent: str | AgentSpec | AgentFunction | None,
    config: str | Path | None,
    baseline: str | Path | Results | None,
    iterations: int | None,
    filter_: str | None,
    tags: Iterable[str],
    metrics: Iterable[Metric | CaseMetric | MetricConfig],
    limits: Limits | None,
    seed: int | None,
    out: str | Path | None,
    progress: bool,
) -> Settings:
    """The arguments as settings.

    Raises:
        ConfigError: with every argument that is out of range.
    """
    problems = list(_out_of_range(iterations, limits))
    if problems:
        raise ConfigError(problems)
    return Settings(
        suites=tuple(suite if isinstance(suite, Suite) else Path(suite) for suite in suites),
        config=None if config is None else Path(config),
        agent=callable_spec(agent) if callable(agent) else agent,
        baseline=None if baseline is None or isinstance(baseline, Results) else Path(baseline),
        iterations=iterations,
        filter=filter_,
        tags=tuple(tags),
        metrics=tuple(map(given_metric, metrics)),
        max_llm_calls=limits.max_calls if limits else None,
        max_cost_usd=limits.max_cost_usd if limits else None,
        seed=seed,
        out=None if out is None else Path(out),
        quiet=not progress,
    )


def _out_of_range(iterations: int | None, limits: Limits | None) -> Iterator[Problem]:
    if iterations is not None and iterations < 1:
        yield Problem(f"iterations: {iterations} is less than 1")
    for name in ("max_calls", "max_cost_usd"):
        value = getattr(limits, name, None)
        if value is not None and value < 0:
            yield Problem(f"limits: {name}: {value} is negative")


def _run(settings: Settings, baseline: object) -> RunOutcome:
    """Run with a journal that is gone afterwards, unless there is a directory for reports."""
    source = _GivenBaseline(baseline) if isinstance(baseline, Results) else None
    with tempfile.TemporaryDirectory(prefix="agenteval-") as scratch:
        outcome = run(settings, RunContext(baseline=source, scratch=Path(scratch)))
        return replace(outcome, results=in_full(outcome.results, outcome.archive), archive=InMemory())


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
