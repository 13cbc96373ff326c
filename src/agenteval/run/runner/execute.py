"""Runs a plan to its end, or to the first signal, and keeps what has finished."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from agenteval.agents.base import Agent, RecordedAgent
from agenteval.agents.registry import build_agent
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.process.interrupt import until_signal
from agenteval.results.model import CaseResult
from agenteval.run.cases.all_cases import AllCases
from agenteval.run.cases.collected import Collected, collected
from agenteval.run.journal.journal import Journal, case_text, parsed
from agenteval.run.journal.run_key import conditions
from agenteval.run.plan import AgentSlot, Job, Plan, PlannedCase, RunLimits
from agenteval.run.runner.execution import Execution, asked_models, budget_warnings
from agenteval.run.runner.preflight import checkable, skipped, why_unchecked
from agenteval.run.runner.recorder import Recorder
from agenteval.run.runner.scheduler import run_jobs
from agenteval.run.runner.scoring import case_of

if TYPE_CHECKING:
    from agenteval.run.plan import ResumedRun


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
        cases = AllCases(plan.cases, plan.journal)
        for position, planned in enumerate(plan.cases):
            cases.add_unwritten(planned.suite.path, position, skipped(planned.case))
        warnings = tuple(why_unchecked(planned.suite, planned.case) for planned in plan.cases[:1])
        return replace(_execution(plan, cases, started, 0.0), nothing_to_check=True, warnings=warnings)
    clock = time.perf_counter()
    runner = _Runner(plan)
    asyncio.run(runner.run())
    execution = _execution(plan, runner.collected, started, earlier_s + time.perf_counter() - clock)
    warnings = (
        *runner.notices,
        *budget_warnings(plan.catalog.resources.gateway),
        *runner.collected.retries.warnings,
    )
    return replace(
        execution,
        earlier_s=earlier_s,
        signal=runner.signal,
        unfinished=runner.unfinished,
        warnings=warnings,
    )


def _execution(plan: Plan, collected: Collected, started: float, duration_s: float) -> Execution:
    asked = asked_models(plan.catalog.resources.gateway)
    return Execution(
        asked=asked,
        run_id=plan.run_id,
        started=started,
        duration_s=duration_s,
        cases=collected.cases(),
        summary=collected.summary(asked),
        total=len(plan.cases),
        pool_in_archive=collected.has_pool,
        fingerprints={} if collected.has_pool else {item.case.id: item.case.fingerprints for item in plan.cases},
        answers=collected.answers(),
        archive=collected.archive,
        plugins=tuple(plan.catalog.resources.graders.plugins),
    )


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
        self._until = None if plan.limits.run_s is None else time.monotonic() + plan.limits.run_s
        self.collected = collected(plan)
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
        # First, as it takes memory for a moment that jobs hold as long as they run.
        begun = conditions(plan) if earlier is None else {}
        left: Sequence[int] = range(len(plan.cases))
        if earlier is not None:
            left = [number for number in left if plan.cases[number].case.id not in earlier.complete]
        if left:
            await plan.catalog.resources.start()
            await self._start(agents, (plan.cases[number] for number in left))
            self.notices = _notices(plan, agents)
        with plan.progress, Journal(plan.journal, earlier.end if earlier else None) as journal:
            recorder = Recorder(plan.catalog.resources, plan.redact, plan.progress, journal, self.collected)
            if earlier is None:
                journal.begin(plan.run_id, _fingerprints(plan), started=round(time.time(), 3), conditions=begun)
            else:
                journal.go_on(round(time.time(), 3), round(earlier.active_s, 3))
                self._take_over(earlier, recorder)
            unfinished = await run_jobs(
                self._jobs(left, agents), plan.catalog, self._limits(), recorder.finished, recorder.iterated
            )
            self.unfinished = len(unfinished)
            if unfinished:
                places = {item.case.id: (item.suite.path, number) for number, item in enumerate(plan.cases)}
                for result in unfinished:
                    recorder.shown(*places[result.id], result)

    def _jobs(self, positions: Iterable[int], agents: Mapping[int, Agent]) -> Iterator[Job]:
        bound: dict[int, AgentSlot] = {}
        recorded = {key: agent for key, agent in agents.items() if isinstance(agent, RecordedAgent)}
        for position in positions:
            item = self._plan.cases[position]
            key = id(item.agent)
            if key not in bound:
                bound[key] = AgentSlot(agents[key], item.agent)
            follow_recording = (
                recorded[key].iterations(item.case.id) if item.follow_recording and key in recorded else None
            )
            yield _job(position, item, bound[key], follow_recording, self._plan.earlier)

    def _limits(self) -> RunLimits:
        if self._until is None:
            return self._plan.limits
        return replace(self._plan.limits, run_s=max(0.0, self._until - time.monotonic()))

    def _take_over(self, earlier: ResumedRun, recorder: Recorder) -> None:
        """The cases that an interrupted run had finished, as they stand in the suite now."""
        with self._plan.journal.open("rb") as lines:
            for position, item in enumerate(self._plan.cases):
                place = earlier.complete.get(item.case.id)
                if place is not None:
                    text = case_text(lines, item.suite.path, place)
                    result = case_of(item.case, parsed(CaseResult, text).iterations)
                    recorder.taken_over(item.suite.path, position, result, place, text)

    async def _start(self, agents: dict[int, Agent], cases: Iterable[PlannedCase]) -> None:
        """Start every agent that cases need; all that cannot exist are named together."""
        problems: list[Problem] = []
        for planned in cases:
            key = id(planned.agent)
            if key in agents:
                continue
            gateway = self._plan.catalog.resources.gateway
            agents[key] = build_agent(planned.agent, self._plan.limits.concurrency, gateway)
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
    )
