"""Runs a plan to its end, or to the first signal, and keeps what has finished."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from agenteval.agents.base import Agent, RecordedAgent
from agenteval.agents.registry import build_agent
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.process.interrupt import until_signal
from agenteval.results.model import CaseResult
from agenteval.run.cases.retention import KeepAll, ShownOnly
from agenteval.run.cases.store import CaseStore, Output
from agenteval.run.journal.journal import Journal, case_text, parsed
from agenteval.run.journal.run_key import RunKey
from agenteval.run.plan import AgentSlot, Job, Plan, PlannedCase, RunLimits
from agenteval.run.runner.execution import Execution, budget_warnings
from agenteval.run.runner.preflight import checkable, skipped, why_unchecked
from agenteval.run.runner.scheduler import run_jobs
from agenteval.run.runner.scoring import case_of
from agenteval.suite.model import AgentSpec
from agenteval.suite.model_agent import KIND as MODEL_AGENT

if TYPE_CHECKING:
    from agenteval.run.plan import ResumedRun


def execute(plan: Plan) -> Execution:
    """Run every case.

    Raises:
        ConfigError: an agent or a metric cannot exist on this machine; nothing was run.
        InfrastructureError: the journal cannot be written.
    """
    # First: a metric that cannot run here, or a broken line, must show before an agent or a judge is paid for.
    survey = _surveyed(plan)
    earlier_s = plan.earlier.active_s if plan.earlier else 0.0
    started = time.time() - earlier_s
    runner = _Runner(plan, survey)
    if survey.total and not survey.is_checkable:
        for position, planned in enumerate(plan.cases):
            runner.store.unfinished(position, planned, skipped(planned.case))
        execution = _execution(plan, runner, started, 0.0)
        return replace(execution, nothing_to_check=True, warnings=survey.why_unchecked)
    clock = time.perf_counter()
    asyncio.run(runner.run())
    execution = _execution(plan, runner, started, earlier_s + time.perf_counter() - clock)
    warnings = (
        *runner.notices,
        *budget_warnings(plan.catalog.resources.gateway),
        *runner.store.retries.warnings,
        *(() if isinstance(plan.cases, Sequence) else plan.cases.warnings),
    )
    return replace(
        execution,
        earlier_s=earlier_s,
        signal=runner.signal,
        unfinished=runner.unfinished,
        warnings=warnings,
    )


def _execution(plan: Plan, runner: _Runner, started: float, duration_s: float) -> Execution:
    store, asked = runner.store, plan.catalog.resources.asked
    return Execution(
        asked=asked,
        run_id=plan.run_id,
        started=started,
        duration_s=duration_s,
        cases=store.cases(),
        summary=store.summary(asked),
        total=runner.survey.total,
        answers=store.answers(),
        archive=store.archive,
        is_pooled=isinstance(plan.cases, Sequence),
        plugins=tuple(plan.catalog.resources.graders.plugins),
    )


@dataclass
class _Survey:
    """What a run must know of all its cases before the first one.

    Attributes:
        total: number of cases.
        is_checkable: whether a metric applies to any case.
        why_unchecked: what the first case lacks to be checked.
        fingerprints: of the suites, by path.
        metered: ids of cases that a model agent answers.
        agents: the agents of cases that are to be asked.
        left: number of cases that an interrupted run has not finished.
        key: what must be the same for the run to be resumed.
    """

    key: RunKey
    total: int = 0
    is_checkable: bool = False
    why_unchecked: tuple[str, ...] = ()
    fingerprints: dict[str, str] = field(default_factory=dict)
    metered: set[str] = field(default_factory=set)
    agents: dict[int, AgentSpec] = field(default_factory=dict)
    left: int = 0


def _surveyed(plan: Plan) -> _Survey:
    """Go through all cases once.

    Raises:
        ConfigError: with everything that metrics need and that is missing, once, or with all broken lines of traces.
    """
    survey = _Survey(RunKey(plan))
    complete = plan.earlier.complete if plan.earlier else {}
    problems: dict[str, Problem] = {}
    for planned in plan.cases:
        case, agent = planned.case, planned.agent
        try:
            survey.is_checkable |= checkable(case, plan.catalog)
        except ConfigError as error:
            for problem in error.problems:
                problems.setdefault(problem.message, problem)
        if not survey.total:
            survey.why_unchecked = (why_unchecked(planned.suite, case),)
        survey.total += 1
        survey.key.add(planned)
        if planned.suite.path not in survey.fingerprints:
            survey.fingerprints[planned.suite.path] = planned.suite.fingerprint
        if agent.kind == MODEL_AGENT:
            survey.metered.add(case.id)
        if case.id not in complete:
            survey.left += 1
            if planned.recorded is None:
                survey.agents[id(agent)] = agent
    if problems:
        raise ConfigError(problems.values())
    return survey


def _case_store(plan: Plan, survey: _Survey, journal: Journal) -> CaseStore:
    return CaseStore(
        journal,
        KeepAll() if plan.compared else ShownOnly(plan.named),
        Output(plan.catalog.resources, plan.redact, plan.progress),
        run_id=plan.run_id,
        # Recorded traces have no entry in a pool: their ids say all that is known of them.
        planned=plan.cases if isinstance(plan.cases, Sequence) else (),
        metered=survey.metered,
    )


class _Runner:
    """Holds what a run has produced so far, so that a signal loses none of it."""

    def __init__(self, plan: Plan, survey: _Survey) -> None:
        self._plan = plan
        self.survey = survey
        self._until = None if plan.limits.run_s is None else time.monotonic() + plan.limits.run_s
        self._journal = Journal(plan.journal, plan.earlier.end if plan.earlier else None)
        self.store = _case_store(plan, survey, self._journal)
        self.unfinished = 0
        self.signal: int | None = None
        self.notices: tuple[str, ...] = ()

    async def run(self) -> None:
        agents: dict[int, Agent] = {}
        try:
            self.signal = await until_signal(self._run_jobs(agents))
        finally:
            resources = self._plan.catalog.resources
            await asyncio.gather(resources.close(), *(agent.close() for agent in agents.values()))

    async def _run_jobs(self, agents: dict[int, Agent]) -> None:
        plan, earlier = self._plan, self._plan.earlier
        if self.survey.left:
            await plan.catalog.resources.start()
            await self._start(agents)
            self.notices = _notices(plan, agents)
        with plan.progress, self._journal as journal:
            if earlier is None:
                journal.begin(
                    plan.run_id,
                    self.survey.fingerprints,
                    started=round(time.time(), 3),
                    conditions=self.survey.key.conditions(),
                )
            else:
                journal.go_on(round(time.time(), 3), round(earlier.active_s, 3))
                self._resume(earlier)
            store = self.store
            unfinished = await run_jobs(
                self._jobs(agents), plan.catalog, self._limits(), store.record, store.record_iteration
            )
            self.unfinished = len(unfinished)
            for job, result in unfinished:
                store.unfinished(job.position, job, result)

    def _jobs(self, agents: Mapping[int, Agent]) -> Iterator[Job]:
        bound: dict[int, AgentSlot] = {}
        recorded = {key: agent for key, agent in agents.items() if isinstance(agent, RecordedAgent)}
        gateway = self._plan.catalog.resources.gateway
        complete = self._plan.earlier.complete if self._plan.earlier else {}
        for position, item in enumerate(self._plan.cases):
            if item.case.id in complete:
                continue
            key = id(item.agent)
            if key not in bound:
                # Nobody asks the agent of recorded answers, so it has not been started.
                agent = agents.get(key) or build_agent(item.agent, self._plan.limits.concurrency, gateway)
                bound[key] = AgentSlot(agent, item.agent)
            follow_recording = (
                recorded[key].iterations(item.case.id) if item.follow_recording and key in recorded else None
            )
            yield _job(position, item, bound[key], follow_recording, self._plan.earlier)

    def _limits(self) -> RunLimits:
        if self._until is None:
            return self._plan.limits
        return replace(self._plan.limits, run_s=max(0.0, self._until - time.monotonic()))

    def _resume(self, earlier: ResumedRun) -> None:
        """Add the cases that the interrupted run had finished, with names and lines as the suite has them now."""
        with self._plan.journal.open("rb") as lines:
            for position, item in enumerate(self._plan.cases):
                place = earlier.complete.get(item.case.id)
                if place is not None:
                    text = case_text(lines, item.suite.path, place)
                    result = case_of(item.case, parsed(CaseResult, text).iterations)
                    self.store.resumed(position, item, result, place, text)

    async def _start(self, agents: dict[int, Agent]) -> None:
        """Start every agent that will be asked; all that cannot exist are named together."""
        problems: list[Problem] = []
        gateway = self._plan.catalog.resources.gateway
        for key, spec in self.survey.agents.items():
            agents[key] = build_agent(spec, self._plan.limits.concurrency, gateway)
            try:
                await agents[key].start()
            except ConfigError as error:
                problems += error.problems
        if problems:
            raise ConfigError(problems)


def _notices(plan: Plan, agents: Mapping[int, Agent]) -> tuple[str, ...]:
    """Tell agents with recordings what they will be asked; what there is to say about it."""
    notices: list[str] = []
    for key, agent in agents.items():
        if isinstance(agent, RecordedAgent):
            notices += agent.expect([item.case for item in plan.cases if id(item.agent) == key])
    return tuple(dict.fromkeys(notices))


def _job(
    position: int, item: PlannedCase, agent: AgentSlot, iterations: int | None, earlier: ResumedRun | None
) -> Job:
    return Job(
        suite=item.suite,
        case=item.case,
        agent=agent,
        iterations=item.iterations if iterations is None else iterations,
        first_iteration=item.first_iteration,
        done=earlier.iterations.get(item.case.id, ()) if earlier else (),
        position=position,
        recorded=item.recorded,
    )
