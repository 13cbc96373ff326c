"""Executes a plan until it is complete or a signal arrives, and keeps the finished cases."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

from agenteval.agents.base import Agent, CheckedAgent, RecordedAgent, RemarkingAgent
from agenteval.agents.registry import build_agent
from agenteval.core.confine import UserCodeRules, under_rules
from agenteval.core.errors import ConfigError, Problem, UserCodeError, raise_failures
from agenteval.core.records import dataclass, field, replace
from agenteval.core.runtime import until_signal
from agenteval.metrics.resources import check_unnamed_judge
from agenteval.metrics.scoring import built_metrics, dead_judges
from agenteval.report.report import remove_reports
from agenteval.results.case import CaseResult
from agenteval.run.plan import (
    Job,
    Plan,
    PlannedCase,
    ResumedRun,
    RunExecution,
    RunLimits,
    budget_warnings,
    why_unchecked,
    with_session,
)
from agenteval.run.run_key import RunKey
from agenteval.run.scheduler import JudgedCases, checkable, run_jobs
from agenteval.run.scoring import case_of
from agenteval.run.store import CaseStore, parsed, remove_journals
from agenteval.suite.agent_definitions import MODEL_AGENT
from agenteval.suite.model import AgentSpec, MetricConfig


def execute(plan: Plan) -> RunExecution:
    """Run every case."""
    # First: a missing requirement or a broken line must be reported before any paid call.
    survey = _checked(plan)
    earlier_s = plan.earlier.active_s if plan.earlier else 0.0
    started = time.time() - earlier_s
    runner = _Runner(plan, survey)
    clock = time.perf_counter()
    asyncio.run(runner.run())
    execution = _execution(plan, runner, started, earlier_s + time.perf_counter() - clock)
    warnings = (
        *runner.notices,
        *budget_warnings(plan.resources.gateway),
        *runner.store.warnings,
        *plan.warnings,
    )
    failures = tuple(runner.store.agents.failures())
    catalogs = (suite.catalog for suite in plan.suites.values())
    return replace(
        execution,
        earlier_s=earlier_s,
        signal=runner.signal,
        unfinished=runner.unfinished,
        refused_calls=plan.resources.gateway.budget.refused,
        warnings=warnings,
        without_calls=runner.without_calls(),
        dead=(*(failure.problem() for failure in failures), *dead_judges(catalogs, plan.resources.gateway)),
        agent_errors=tuple(failure.error for failure in failures),
    )


def check(plan: Plan) -> tuple[tuple[str, ...], list[Problem]]:
    """Check everything before the first call of an agent; return notices, and what this machine lacks."""
    return asyncio.run(_checked_once(plan, _checked(plan)))


async def _checked_once(plan: Plan, survey: _Precheck) -> tuple[tuple[str, ...], list[Problem]]:
    agents: dict[int, Agent] = {}
    lacking: list[Problem] = []

    async def ready(agent: Agent) -> None:
        if isinstance(agent, CheckedAgent):
            lacking.extend(await agent.check())
        else:
            await agent.start()

    try:
        await _start(plan, survey, agents, ready)
        return _notices(plan, survey, agents), lacking
    finally:
        await _close(plan, agents)


async def _close(plan: Plan, agents: Mapping[int, Agent]) -> None:
    await asyncio.gather(plan.resources.close(), *(agent.close() for agent in agents.values()))


def _execution(plan: Plan, runner: _Runner, started: float, duration_s: float) -> RunExecution:
    store, asked = runner.store, plan.resources.asked
    return RunExecution(
        asked=asked,
        run_id=plan.run_id,
        started=started,
        duration_s=duration_s,
        cases=store.shown(),
        summary=store.summary(asked),
        total=runner.survey.total,
        answers=store.answers(),
        tallies=store.tallies,
        archive=store,
        is_baseline_run=plan.known_cases is not None,
        plugins=plan.resources.plugins,
    )


@dataclass
class _Precheck:
    """Facts about all cases of a run that the runner needs before the first one.

    Attributes:
        unchecked: for each suite why no metric applies to any of its cases, also to those that are not selected.
        some_checked: whether a metric applies to a case of another suite.
        metered: ids of cases that a model agent answers.
    """

    key: RunKey
    judged: JudgedCases
    total: int = 0
    unchecked: list[Problem] = field(default_factory=list)
    some_checked: bool = False
    fingerprints: dict[str, str] = field(default_factory=dict)
    metered: set[str] = field(default_factory=set)
    agents: dict[int, tuple[AgentSpec, UserCodeRules]] = field(default_factory=dict)
    left: int = 0


def _checked(plan: Plan) -> _Precheck:
    survey = _surveyed(plan)
    if survey.unchecked and not survey.some_checked:
        raise ConfigError(dict.fromkeys(survey.unchecked))
    for path, calls in survey.judged.calls.items():
        plan.suites[path].catalog.resources.judgements.planned[path] = calls
    return survey


def _surveyed(plan: Plan) -> _Precheck:
    survey = _Precheck(RunKey(plan), JudgedCases(plan.seed))
    complete = plan.earlier.complete if plan.earlier else {}
    problems: dict[tuple[str, str], Problem] = {}
    checked: set[str] = set()
    unchecked: dict[str, PlannedCase] = {}
    # The metrics of a suite whose cases are checkable: most cases share them.
    shared: dict[str, tuple[MetricConfig, ...]] = {}
    for planned in plan.cases:
        case, agent = planned.case, planned.agent
        try:
            is_known = shared.get(planned.suite.path) is case.all_metrics
            if is_known or checkable(case, plan.suites[planned.suite.path].catalog):
                shared[planned.suite.path] = case.all_metrics
                checked.add(planned.suite.path)
            else:
                unchecked.setdefault(planned.suite.path, planned)
        except ConfigError as error:
            for problem in error.problems:
                problems.setdefault((problem.file, problem.message), problem)
        survey.total += 1
        survey.key.add(planned)
        survey.judged.add(planned)
        if planned.suite.path not in survey.fingerprints:
            survey.fingerprints[planned.suite.path] = planned.suite.fingerprint
        if agent.kind == MODEL_AGENT:
            survey.metered.add(case.id)
        if (planned.suite.path, case.id) not in complete:
            survey.left += 1
            if planned.recorded is None:
                survey.agents.setdefault(id(agent), (agent, plan.suites[planned.suite.path].rules))
    if problems:
        raise ConfigError(problems.values())
    survey.unchecked, survey.some_checked = list(_unchecked(unchecked, checked, plan)), bool(checked)
    return survey


def _unchecked(first_cases: Mapping[str, PlannedCase], checked: Collection[str], plan: Plan) -> Iterator[Problem]:
    for path, first in first_cases.items():
        if path not in checked and not _has_checkable_case(first, plan):
            lacking = plan.suites[path].catalog.without_key
            asked = [problem for metric in first.case.all_metrics for problem in lacking.get(id(metric), ())]
            yield from asked or [why_unchecked(first.suite, first.case)]


def _has_checkable_case(first: PlannedCase, plan: Plan) -> bool:
    if first.recorded is not None:
        # All traces have the same metrics.
        return False
    catalog = plan.suites[first.suite.path].catalog
    return any(checkable(case, catalog) for case in first.suite.cases)


class _Runner:
    def __init__(self, plan: Plan, survey: _Precheck) -> None:
        self._plan = plan
        self.survey = survey
        self._until = None if plan.limits.run_s is None else time.monotonic() + plan.limits.run_s
        self.store = CaseStore(plan, survey.total, survey.metered)
        self.unfinished = 0
        self.signal: int | None = None
        self.notices: tuple[str, ...] = ()
        self._agents: dict[int, Agent] = {}

    def without_calls(self) -> tuple[str, ...]:
        return tuple(self.store.agents.warnings(self._mapping_of_calls))

    def _mapping_of_calls(self, spec: AgentSpec) -> str | None:
        agent = self._agents.get(id(spec))
        return agent.remarks().mapping_of_calls if isinstance(agent, RemarkingAgent) else None

    async def run(self) -> None:
        agents = self._agents
        try:
            self.signal = await until_signal(self._run_jobs(agents))
            if not self.store.journal.is_opened:
                # A signal ended the start of the agents: what is reported is this run, and not the one before it.
                with self._begun():
                    pass
        finally:
            await _close(self._plan, agents)

    async def _run_jobs(self, agents: dict[int, Agent]) -> None:
        plan = self._plan
        if self.survey.left:
            await _start(plan, self.survey, agents)
            self.notices = _notices(plan, self.survey, agents)
        with plan.progress, self._begun():
            store = self.store
            unfinished = await run_jobs(
                self._jobs(agents),
                self._limits(),
                store.record,
                store.record_iteration,
                seed=plan.seed,
                progress=plan.progress,
                may_stop=plan.may_stop,
            )
            self.unfinished = len(unfinished)
            self.notices += _remarks(agents.values())
            for job, result in unfinished:
                store.unfinished(job.position, job.item, result)

    @contextmanager
    def _begun(self) -> Iterator[None]:
        plan, earlier = self._plan, self._plan.earlier
        for directory in plan.replaced:
            # The journal comes last: what a killed process leaves is of one run at any time.
            remove_reports(directory)
            remove_journals(directory)
        with self.store.journal as journal:
            if earlier is None:
                journal.begin(
                    plan.run_id,
                    self.survey.fingerprints,
                    started=round(time.time(), 3),
                    conditions=self.survey.key.conditions(),
                )
            else:
                journal.resume(round(time.time(), 3), round(earlier.active_s, 3))
                self._resume(earlier)
            yield

    def _jobs(self, agents: Mapping[int, Agent]) -> Iterator[Job]:
        plan, earlier = self._plan, self._plan.earlier
        bound: dict[int, Agent] = {}
        for position, planned in enumerate(plan.cases):
            item, case_id, key = planned, planned.case.id, id(planned.agent)
            if earlier is not None and (item.suite.path, case_id) in earlier.complete:
                continue
            if key not in bound:
                # The agents of recorded answers are never called, so they are not started.
                gateway = plan.resources.gateway
                bound[key] = agents.get(key) or build_agent(item.agent, plan.limits.concurrency, gateway)
            if item.follow_recording and isinstance(agent := agents.get(key), RecordedAgent):
                item = replace(item, iterations=agent.iterations(case_id) or item.iterations)
            yield Job(
                item,
                plan.suites[item.suite.path],
                bound[key],
                done=tuple(earlier.iterations.get(case_id, {}).values()) if earlier is not None else (),
                position=position,
                unjudged=self.survey.judged.why_not(item),
            )

    def _limits(self) -> RunLimits:
        if self._until is None:
            return self._plan.limits
        return replace(self._plan.limits, run_s=max(0.0, self._until - time.monotonic()))

    def _resume(self, earlier: ResumedRun) -> None:
        for position, item in enumerate(self._plan.cases):
            there = earlier.complete.get((item.suite.path, item.case.id))
            if there is not None:
                done = parsed(CaseResult, self.store.journal.read(*there))
                self.store.resumed(position, item, case_of(item.case, done.iterations, done.unneeded), there)


async def _start(
    plan: Plan,
    survey: _Precheck,
    agents: dict[int, Agent],
    ready: Callable[[Agent], Awaitable[None]] = lambda agent: agent.start(),
) -> None:
    await plan.resources.start()
    await check_unnamed_judge(built_metrics(suite.catalog for suite in plan.suites.values()), plan.resources.gateway)
    failures: list[ConfigError | UserCodeError] = []
    for key, (spec, rules) in survey.agents.items():
        with under_rules(rules):
            agents[key] = build_agent(
                with_session(spec, plan.run_id), plan.limits.concurrency, plan.resources.gateway
            )
            try:
                await ready(agents[key])
            except (ConfigError, UserCodeError) as error:
                failures.append(error)
    raise_failures(failures)


def _remarks(agents: Iterable[Agent]) -> tuple[str, ...]:
    found = (remark for agent in agents if isinstance(agent, RemarkingAgent) for remark in agent.remarks().texts)
    return tuple(dict.fromkeys(found))


def _notices(plan: Plan, survey: _Precheck, agents: Mapping[int, Agent]) -> tuple[str, ...]:
    """Tell agents with recordings the cases that they will receive; return their notices, and those of metrics."""
    lacking = (problems for suite in plan.suites.values() for problems in suite.catalog.without_key.values())
    notices = [str(problem) for problems in (survey.unchecked, *lacking) for problem in problems]
    for key, agent in agents.items():
        if isinstance(agent, RecordedAgent):
            notices += agent.expect([item.case for item in plan.cases if id(item.agent) == key])
    return tuple(dict.fromkeys(notices))
