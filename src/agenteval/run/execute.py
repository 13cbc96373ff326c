"""Runs a plan to its end, or to the first signal, and keeps what has finished."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from agenteval.agents.base import Agent
from agenteval.agents.build import build_agent
from agenteval.analysis.answers import evaluated
from agenteval.analysis.model import Evaluated
from agenteval.errors import ConfigError, Problem
from agenteval.metrics.scoring import MetricCatalog
from agenteval.report.escape import Redactor
from agenteval.results.model import CaseResult, IterationResult, Score, TurnResult
from agenteval.results.rollup import summarise
from agenteval.run.execution import Execution, asked_models, budget_warnings
from agenteval.run.interrupt import until_signal
from agenteval.run.journal import Journal
from agenteval.run.masking import redacted
from agenteval.run.progress import Progress
from agenteval.run.scheduler import BoundAgent, Job, checkable, run_jobs
from agenteval.suite.model import AgentSpec, Case, Suite
from agenteval.suite.model_agent import KIND as MODEL_AGENT


@dataclass(frozen=True)
class PlannedCase:
    """A case with everything that was decided about it."""

    suite: Suite
    case: Case
    agent: AgentSpec
    iterations: int
    first_iteration: int = 0


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


def execute(plan: Plan) -> Execution:
    """Run every case.

    Raises:
        ConfigError: an agent or a metric cannot exist on this machine; nothing was run.
        InfrastructureError: the journal cannot be written.
    """
    # Built first: a metric that cannot run here must show before an agent is paid for.
    checked = _checkable(plan)
    started = time.time()
    if plan.cases and not any(checked):
        skipped = {planned.case.id: _skipped(planned) for planned in plan.cases}
        warnings = tuple(_why_unchecked(planned) for planned in plan.cases[:1])
        execution = _execution(plan, skipped, started, 0.0)
        return replace(execution, nothing_to_check=True, warnings=warnings)
    clock = time.perf_counter()
    runner = _Runner(plan)
    asyncio.run(runner.run())
    execution = _execution(plan, runner.finished, started, time.perf_counter() - clock)
    return replace(execution, signal=runner.signal, warnings=budget_warnings(plan.catalog.resources.gateway))


def _execution(plan: Plan, finished: Mapping[str, CaseResult], started: float, duration_s: float) -> Execution:
    cases: dict[str, list[CaseResult]] = {item.suite.path: [] for item in plan.cases}
    answers: dict[str, list[Evaluated]] = {}
    for item in plan.cases:
        # As the suite lists them, whatever order they ended in.
        result = finished.get(item.case.id)
        if result is not None:
            cases[item.suite.path].append(result)
            if item.suite.evaluation is not None:
                answers.setdefault(item.suite.path, []).extend(_answers(item, result))
    # What a model of ours answered is counted with the models.
    metered = frozenset(item.case.id for item in plan.cases if item.agent.kind == MODEL_AGENT)
    asked = asked_models(plan.catalog.resources.gateway)
    summary = summarise(chain.from_iterable(cases.values()), asked, metered)
    return Execution(
        asked=asked,
        run_id=plan.run_id,
        started=started,
        duration_s=duration_s,
        cases=cases,
        summary=summary,
        total=len(plan.cases),
        fingerprints={item.case.id: item.case.fingerprint for item in plan.cases},
        answers=answers,
    )


def _answers(item: PlannedCase, result: CaseResult) -> Iterator[Evaluated]:
    for iteration in result.iterations:
        yield evaluated(result, iteration, item.case.persona, {"success": iteration.status != "error"})


def _checkable(plan: Plan) -> list[bool]:
    """For each case whether any metric can say anything about it.

    Raises:
        ConfigError: with every thing that metrics need and that is missing; once, however many need it.
    """
    checked: list[bool] = []
    problems: dict[str, Problem] = {}
    for planned in plan.cases:
        try:
            checked.append(checkable(planned.case, plan.catalog))
        except ConfigError as error:
            for problem in error.problems:
                problems.setdefault(problem.message, problem)
    if problems:
        raise ConfigError(problems.values())
    return checked


def _fingerprints(plan: Plan) -> dict[str, str]:
    suites = {item.suite.path: item.suite for item in plan.cases}
    return {path: suite.fingerprint for path, suite in suites.items()}


class _Runner:
    """Holds what a run has produced so far, so that a signal loses none of it."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.finished: dict[str, CaseResult] = {}
        self.signal: int | None = None

    async def run(self) -> None:
        agents: dict[int, Agent] = {}
        try:
            self.signal = await until_signal(self._run_jobs(agents))
        finally:
            resources = self._plan.catalog.resources
            await asyncio.gather(resources.close(), *(agent.close() for agent in agents.values()))

    async def _run_jobs(self, agents: dict[int, Agent]) -> None:
        plan = self._plan
        await plan.catalog.resources.start()
        await self._start(agents)
        jobs = [_job(item, agents[id(item.agent)]) for item in plan.cases]
        with plan.progress, Journal(plan.journal) as journal:
            journal.begin(plan.run_id, _fingerprints(plan))

            def finished(job: Job, result: CaseResult) -> None:
                clean = redacted(result, plan.redact)
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


def _job(item: PlannedCase, agent: Agent) -> Job:
    return Job(
        suite=item.suite,
        case=item.case,
        agent=BoundAgent(agent, item.agent),
        iterations=item.iterations,
        first_iteration=item.first_iteration,
    )


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
