"""Runs a plan to its end, or to the first signal, and keeps what has finished."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from agenteval.agents.base import Agent, RecordedAgent
from agenteval.agents.build import build_agent
from agenteval.analysis.answers import evaluated
from agenteval.analysis.model import Evaluated
from agenteval.errors import ConfigError, Problem
from agenteval.metrics.scoring import MetricCatalog
from agenteval.report.escape import Redactor
from agenteval.results.model import CaseResult
from agenteval.results.rollup import summarise
from agenteval.run.conditions import conditions
from agenteval.run.execution import Execution, asked_models, budget_warnings, retry_warnings
from agenteval.run.interrupt import until_signal
from agenteval.run.job import BoundAgent, Job
from agenteval.run.journal import Journal
from agenteval.run.long_cases import LongCases
from agenteval.run.progress import Progress
from agenteval.run.rating import case_of
from agenteval.run.recorder import Recorder
from agenteval.run.resume import Earlier
from agenteval.run.scheduler import Pace, run_jobs
from agenteval.run.unchecked import checkable, skipped, why_unchecked
from agenteval.suite.model import AgentSpec, Case, Suite
from agenteval.suite.model_agent import KIND as MODEL_AGENT


@dataclass(frozen=True)
class PlannedCase:
    """A case with everything that was decided about it.

    Attributes:
        as_recorded: nobody asked for a number of iterations, so that an agent with a recording repeats all of it.
    """

    suite: Suite
    case: Case
    agent: AgentSpec
    iterations: int
    first_iteration: int = 0
    as_recorded: bool = False


@dataclass(frozen=True)
class Plan:
    """What to run, and where to tell about it.

    Attributes:
        earlier: what an interrupted run left, which this one brings to its end.
    """

    run_id: str
    cases: Sequence[PlannedCase]
    pace: Pace
    catalog: MetricCatalog
    journal: Path
    redact: Redactor = field(repr=False)
    progress: Progress
    earlier: Earlier | None = None


def execute(plan: Plan) -> Execution:
    """Run every case.

    Raises:
        ConfigError: an agent or a metric cannot exist on this machine; nothing was run.
        InfrastructureError: the journal cannot be written.
    """
    # Built first: a metric that cannot run here must show before an agent is paid for.
    checked = _checkable(plan)
    earlier_s = plan.earlier.active_s if plan.earlier else 0.0
    started = time.time() - earlier_s
    if plan.cases and not any(checked):
        finished = {planned.case.id: skipped(planned.case) for planned in plan.cases}
        warnings = tuple(why_unchecked(planned.suite, planned.case) for planned in plan.cases[:1])
        execution = _execution(plan, finished, started, 0.0)
        return replace(execution, nothing_to_check=True, warnings=warnings)
    clock = time.perf_counter()
    runner = _Runner(plan)
    asyncio.run(runner.run())
    execution = _execution(plan, runner.finished, started, earlier_s + time.perf_counter() - clock)
    warnings = (
        *runner.remarks,
        *budget_warnings(plan.catalog.resources.gateway),
        *retry_warnings(runner.finished.values()),
    )
    return replace(
        execution,
        earlier_s=earlier_s,
        archive=runner.long_cases,
        signal=runner.signal,
        unfinished=runner.unfinished,
        warnings=warnings,
    )


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
        self._until = None if plan.pace.run_s is None else time.monotonic() + plan.pace.run_s
        self.finished: dict[str, CaseResult] = {}
        self.long_cases = LongCases(plan.journal)
        self.unfinished = 0
        self.signal: int | None = None
        self.remarks: tuple[str, ...] = ()

    async def run(self) -> None:
        agents: dict[int, Agent] = {}
        try:
            self.signal = await until_signal(self._run_jobs(agents))
        finally:
            resources = self._plan.catalog.resources
            await asyncio.gather(resources.close(), *(agent.close() for agent in agents.values()))

    async def _run_jobs(self, agents: dict[int, Agent]) -> None:
        plan, earlier = self._plan, self._plan.earlier
        left = [item for item in plan.cases if earlier is None or item.case.id not in earlier.complete]
        if left:
            await plan.catalog.resources.start()
            await self._start(agents, left)
            self.remarks = _remarks(plan, agents)
        recorded = {key: agent for key, agent in agents.items() if isinstance(agent, RecordedAgent)}
        jobs = [_job(item, agents[id(item.agent)], recorded.get(id(item.agent)), earlier) for item in left]
        with plan.progress, Journal(plan.journal, earlier.end if earlier else None) as journal:
            if earlier is None:
                journal.begin(
                    plan.run_id, _fingerprints(plan), started=round(time.time(), 3), conditions=conditions(plan)
                )
            else:
                journal.go_on(round(time.time(), 3), round(earlier.active_s, 3))
                self._take_over(earlier)
            recorder = Recorder(
                plan.catalog.resources, plan.redact, plan.progress, journal, self.finished, self.long_cases
            )
            unfinished = await run_jobs(jobs, plan.catalog, self._pace(), recorder.finished, recorder.iterated)
            self.unfinished = len(unfinished)
            for result in unfinished:
                recorder.shown(result)

    def _pace(self) -> Pace:
        if self._until is None:
            return self._plan.pace
        return replace(self._plan.pace, run_s=max(0.0, self._until - time.monotonic()))

    def _take_over(self, earlier: Earlier) -> None:
        """The cases that an interrupted run had finished, as they stand in the suite now."""
        for item in self._plan.cases:
            if item.case.id in earlier.complete:
                result = case_of(item.case, earlier.iterations[item.case.id])
                self.finished[item.case.id] = result
                self._plan.progress.finished(result)

    async def _start(self, agents: dict[int, Agent], cases: Iterable[PlannedCase]) -> None:
        """Start every agent that cases need; all that cannot exist are named together."""
        problems: list[Problem] = []
        for planned in cases:
            key = id(planned.agent)
            if key in agents:
                continue
            gateway = self._plan.catalog.resources.gateway
            agents[key] = build_agent(planned.agent, self._plan.pace.concurrency, gateway)
            try:
                await agents[key].start()
            except ConfigError as error:
                problems += error.problems
        if problems:
            raise ConfigError(problems)


def _remarks(plan: Plan, agents: Mapping[int, Agent]) -> tuple[str, ...]:
    """Tell agents with recordings what they will be asked; what there is to say about it."""
    remarks: list[str] = []
    for key, agent in agents.items():
        if isinstance(agent, RecordedAgent):
            remarks += agent.expect([item.case for item in plan.cases if id(item.agent) == key])
    return tuple(dict.fromkeys(remarks))


def _job(item: PlannedCase, agent: Agent, recorded: RecordedAgent | None, earlier: Earlier | None) -> Job:
    as_recorded = recorded.iterations(item.case.id) if recorded and item.as_recorded else None
    return Job(
        suite=item.suite,
        case=item.case,
        agent=BoundAgent(agent, item.agent),
        iterations=item.iterations if as_recorded is None else as_recorded,
        first_iteration=item.first_iteration,
        done=earlier.iterations.get(item.case.id, ()) if earlier else (),
    )
