"""Runs a plan to its end, or to the first signal, and keeps what has finished."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agenteval.agents.base import Agent
from agenteval.agents.build import build_agent
from agenteval.errors import ConfigError, Problem
from agenteval.llm.gateway import Gateway
from agenteval.metrics.scoring import MetricCatalog
from agenteval.report.escape import Redactor
from agenteval.results.model import CaseResult, IterationResult, RunUsage, Score, TurnResult
from agenteval.run.journal import Journal
from agenteval.run.progress import Progress
from agenteval.run.scheduler import BoundAgent, Job, checkable, run_jobs
from agenteval.suite.model import AgentSpec, Case, Suite

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_NEVER_MASKED = frozenset({"id", "kind", "status"})


@dataclass(frozen=True)
class PlannedCase:
    """A case with everything that was decided about it."""

    suite: Suite
    case: Case
    agent: AgentSpec
    iterations: int


@dataclass(frozen=True)
class Plan:
    """What to run, and where to tell about it."""

    run_id: str
    cases: Sequence[PlannedCase]
    concurrency: int
    catalog: MetricCatalog
    journal: Path
    redact: Redactor = field(repr=False)
    progress: Progress


@dataclass(frozen=True)
class Execution:
    """What came of a plan.

    Attributes:
        finished: results by case id; a case that was under way when a signal came is missing.
        signal: the signal that ended the run early.
        models: what asking models took, to judge or to answer.
        nothing_to_check: no metric could say anything about any case, so no agent was called.
    """

    run_id: str
    started: float
    duration_s: float
    finished: Mapping[str, CaseResult]
    signal: int | None = None
    nothing_to_check: bool = False
    models: RunUsage = field(default_factory=RunUsage)
    warnings: tuple[str, ...] = ()


def execute(plan: Plan) -> Execution:
    """Run every case.

    Raises:
        ConfigError: an agent or a metric cannot exist on this machine; nothing was run.
        InfrastructureError: the journal cannot be written.
    """
    # Built first: a metric that cannot run here must show before an agent is paid for.
    checked = [checkable(planned.case, plan.catalog) for planned in plan.cases]
    started = time.time()
    if plan.cases and not any(checked):
        skipped = {planned.case.id: _skipped(planned) for planned in plan.cases}
        return Execution(
            run_id=plan.run_id,
            started=started,
            duration_s=0.0,
            finished=skipped,
            nothing_to_check=True,
            warnings=tuple(_why_unchecked(planned) for planned in plan.cases[:1]),
        )
    clock = time.perf_counter()
    runner = _Runner(plan)
    asyncio.run(runner.run())
    return Execution(
        run_id=plan.run_id,
        started=started,
        duration_s=time.perf_counter() - clock,
        finished=runner.finished,
        signal=runner.signal,
        models=_asking(plan.catalog.resources.gateway),
        warnings=_budget_warnings(plan.catalog.resources.gateway),
    )


def _fingerprints(plan: Plan) -> dict[str, str]:
    suites = {item.suite.path: item.suite for item in plan.cases}
    return {path: suite.fingerprint for path, suite in suites.items()}


def _asking(gateway: Gateway) -> RunUsage:
    return RunUsage(
        input_tokens=gateway.input_tokens,
        output_tokens=gateway.output_tokens,
        llm_calls=gateway.budget.calls,
        cost_usd=gateway.budget.cost_usd,
    )


def _budget_warnings(gateway: Gateway) -> tuple[str, ...]:
    """What a spent or powerless budget means for the results."""
    warnings = []
    refused = gateway.budget.refused
    if refused:
        warnings.append(
            f"the budget for models is used up: {refused} calls were not made; "
            "what they would judge is skipped, and turns that a model was to answer are errors"
        )
    if gateway.unpriced and gateway.budget.limits.max_cost_usd is not None:
        names = ", ".join(sorted(gateway.unpriced))
        warnings.append(f"max_cost_usd does not hold for {names}: the price is not known")
    return tuple(warnings)


class _Runner:
    """Holds what a run has produced so far, so that a signal loses none of it."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.finished: dict[str, CaseResult] = {}
        self.signal: int | None = None

    async def run(self) -> None:
        agents: dict[int, Agent] = {}
        task = asyncio.create_task(self._run_jobs(agents))
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._stop, number, task)
        try:
            await task
        except asyncio.CancelledError:
            if self.signal is None:
                raise
        finally:
            resources = self._plan.catalog.resources
            await asyncio.gather(resources.close(), *(agent.close() for agent in agents.values()))

    def _stop(self, number: int, task: asyncio.Task[None]) -> None:
        self.signal = number
        task.cancel()

    async def _run_jobs(self, agents: dict[int, Agent]) -> None:
        plan = self._plan
        await plan.catalog.resources.start()
        await self._start(agents)
        jobs = [
            Job(item.suite, item.case, BoundAgent(agents[id(item.agent)], item.agent), item.iterations)
            for item in plan.cases
        ]
        with plan.progress, Journal(plan.journal) as journal:
            journal.begin(plan.run_id, _fingerprints(plan))

            def finished(job: Job, result: CaseResult) -> None:
                clean = _redacted(result, plan.redact)
                self.finished[job.case.id] = clean
                journal.add(job.suite.path, clean)
                plan.progress.finished(clean)

            await run_jobs(jobs, plan.catalog, plan.concurrency, finished)

    async def _start(self, agents: dict[int, Agent]) -> None:
        """Start every agent that the plan needs; all that cannot exist are named together."""
        problems: list[Problem] = []
        for planned in self._plan.cases:
            key = id(planned.agent)
            if key in agents:
                continue
            gateway = self._plan.catalog.resources.gateway
            agents[key] = build_agent(planned.agent, self._plan.concurrency, gateway)
            try:
                await agents[key].start()
            except ConfigError as error:
                problems += error.problems
        if problems:
            raise ConfigError(problems)


def _redacted(result: CaseResult, redact: Redactor) -> CaseResult:
    """The result without secrets that an agent or a metric repeated."""
    text = result.model_dump_json()
    return result if redact(text) == text else _masked(result, redact)


def _masked(value: Any, redact: Redactor) -> Any:
    """Masks the texts inside our models; what identifies and classifies stays, as it is matched later."""
    if isinstance(value, BaseModel):
        masked = {name: _masked(item, redact) for name, item in value if name not in _NEVER_MASKED}
        return value.model_copy(update=masked)
    if isinstance(value, list):
        return [_masked(item, redact) for item in value]
    return redact.data(value)


def _skipped(planned: PlannedCase) -> CaseResult:
    """A case that nothing can be said about, without asking the agent."""
    turns = [
        TurnResult(
            index=index,
            input=turn.input,
            ground_truth=turn.ground_truth,
            response=None,
            scores=[
                Score(
                    id=metric.id,
                    kind=metric.kind,
                    score=None,
                    threshold=metric.threshold,
                    passed=None,
                    status="skipped",
                    reason="the case has no ground_truth",
                )
                for metric in turn.metrics
            ],
        )
        for index, turn in enumerate(planned.case.turns)
    ]
    case = planned.case
    return CaseResult(
        id=case.id,
        name=case.name,
        tags=list(case.tags),
        cluster=case.cluster,
        line=case.line,
        status="skipped",
        score=None,
        iterations=[IterationResult(index=0, status="skipped", score=None, turns=turns)],
    )


def _why_unchecked(planned: PlannedCase) -> str:
    case = planned.case
    what = (
        "has no `ground_truth` for its metrics to compare with"
        if any(turn.metrics for turn in case.turns)
        else "has no metric"
    )
    line = f":{case.line}" if case.line else ""
    return f"{planned.suite.path}{line}: case {case.name!r} {what}, and neither has any other case; nothing was run"
