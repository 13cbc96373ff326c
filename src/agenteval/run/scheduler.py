"""Which iteration runs when, and what is checked before the first one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from agenteval.core.llm.models import NotAskedError
from agenteval.core.records import dataclass, field
from agenteval.metrics.base import requirements
from agenteval.metrics.judge_quota import JudgeSample, trace_identity
from agenteval.metrics.scoring import MetricCatalog
from agenteval.results.case import CaseResult, IterationResult, NotAsked
from agenteval.run.conversation import Attachments, Conversations, TurnRecord, recorded_exchange
from agenteval.run.plan import Job, MayStop, PlannedCase, RunLimits, counts
from agenteval.run.progress import Progress, Step
from agenteval.run.scoring import case_of, missing_iteration, rate_case, rate_iteration
from agenteval.suite.model import Case, MetricConfig

if TYPE_CHECKING:
    from agenteval.suite.evaluation import JudgeLimits


class JudgedCases:
    """The cases of a run that are judged; every case is added once before the first one runs."""

    def __init__(self, seed: int | None) -> None:
        self._sample = JudgeSample(seed)

    def add(self, item: PlannedCase) -> None:
        """Add a case."""
        limits = _limits(item.case)
        if limits:
            self._sample.add(item.suite.path, limits[0], _identity(item), len(limits) * item.iterations)

    @property
    def calls(self) -> Mapping[str, int]:
        """Return the calls that the judged cases of each suite need, by its path."""
        return self._sample.calls

    def why_not(self, item: PlannedCase) -> NotAskedError | None:
        """Return why a case is not judged; ``None`` if it is, or if it has no judge with limits."""
        limits = _limits(item.case)
        return self._sample.left_out(item.suite.path, limits[0], _identity(item)) if limits else None


def _limits(case: Case) -> list[JudgeLimits]:
    return [metric.judge_limits for metric in case.all_metrics if metric.judge_limits is not None]


def _identity(item: PlannedCase) -> str:
    return item.case.id if item.recorded is None else trace_identity(item.recorded.record)


def checkable(case: Case, catalog: MetricCatalog) -> bool:
    """Return whether any metric applies to a case, according to the suite alone.

    Every metric of the case is built, including those that do not apply and those without weight.
    """
    for metric in case.all_metrics:
        catalog.get(metric)

    def decides(metric: MetricConfig) -> bool:
        return counts(metric, case) and id(metric) not in catalog.without_key

    return any(map(decides, case.metrics)) or any(
        decides(metric) and ("ground_truth" not in requirements(catalog.get(metric)) or turn.ground_truth is not None)
        for turn in case.turns
        for metric in turn.metrics
    )


_TIME_LIMIT_REACHED = "not run: the time limit was reached"
_TIME_LIMIT = NotAsked(cause="time", limit="time limit of the run")

Finished = Callable[[Job, CaseResult], None]

# Returns the iteration to keep until its case is finished.
Iterated = Callable[[Job, IterationResult], IterationResult]


def _keep(_job: Job, iteration: IterationResult) -> IterationResult:
    return iteration


async def run_jobs(
    jobs: Iterable[Job],
    limits: RunLimits,
    finished: Finished,
    iterated: Iterated = _keep,
    *,
    seed: int | None = None,
    progress: Progress | None = None,
    may_stop: MayStop | None = None,
) -> list[tuple[Job, CaseResult]]:
    """Run every job.

    Args:
        jobs: the jobs; jobs of one agent start in this order. Either all jobs have recorded answers, and are
            then drawn one by one, or none has.
        finished: receives each case as it finishes; an exception that it raises ends the run.
        seed: the random seed of the waits before retries; ``None`` for a random one.
        may_stop: asked after each pass but the last whether the run may end; without it no pass waits.

    Returns:
        The cases that did not finish within the time limit; their missing iterations are errors.
    """
    scheduler = _Scheduler(jobs, limits, finished, iterated, seed=seed, progress=progress or Progress())
    scheduler.may_stop = may_stop
    if limits.run_s is not None and limits.run_s <= 0:
        return scheduler.unfinished()
    try:
        async with asyncio.timeout(limits.run_s) as limit:
            await scheduler.run()
    except ExceptionGroup as problems:
        # Errors of agents and metrics are results; other exceptions end the run.
        raise problems.exceptions[0] from None
    except TimeoutError:
        if not limit.expired():
            raise
    return scheduler.unfinished()


@dataclass
class _AgentQueue:
    width: int
    conversations: dict[int, Conversations] = field(default_factory=dict)
    jobs: deque[Job] = field(default_factory=deque)
    iterations: int = 0

    def __post_init__(self) -> None:
        self.under_way = asyncio.Semaphore(self.width)

    def add(self, job: Job) -> None:
        self.jobs.append(job)
        self.iterations += len(job.left)


class _Scheduler:
    def __init__(
        self,
        jobs: Iterable[Job],
        limits: RunLimits,
        finished: Finished,
        iterated: Iterated,
        *,
        seed: int | None,
        progress: Progress,
    ) -> None:
        self.may_stop: MayStop | None = None
        self._seed = seed
        self._progress = progress
        self._limits = limits
        self._finished = finished
        self._iterated = iterated
        self._under_way = asyncio.Semaphore(limits.concurrency)
        self._attachments = Attachments()
        # Waiting jobs by agent, then jobs that have started and not finished.
        self._lanes: dict[int, _AgentQueue] = {}
        self._nothing_left: deque[Job] = deque()
        self._begun: dict[str, Job] = {}
        self._collected: dict[str, list[IterationResult]] = {}
        # Of cases that have fewer iterations than others, while a run may end early.
        self._done: dict[str, list[IterationResult]] = {}
        drawn = iter(jobs)
        self._recorded: Iterator[Job] = iter(())
        for job in drawn:
            if job.item.recorded is not None:
                self._recorded = chain((job,), drawn)
                break
            self._put(job)

    async def run(self) -> None:
        async with self._attachments:
            async with asyncio.TaskGroup() as group:
                while self._nothing_left:
                    job = self._nothing_left.popleft()
                    self._begun[job.item.case.id] = job
                    await self._finish(job, job.done)
                group.create_task(self._score_recorded(group, self._limits.concurrency - 1))
                if self.may_stop is None:
                    for lane in self._lanes.values():
                        self._work_on(group, lane, self._queue(lane))
            if self.may_stop is not None:
                await self._pass_by_pass(self.may_stop)

    def _work_on(self, group: asyncio.TaskGroup, lane: _AgentQueue, queue: Iterator[tuple[Job, int]]) -> None:
        for _ in range(min(self._limits.concurrency, lane.iterations)):
            group.create_task(self._work(lane, queue))

    async def _pass_by_pass(self, may_stop: MayStop) -> None:
        lanes = [(lane, list(lane.jobs)) for lane in self._lanes.values()]
        every = sorted((job for _, jobs in lanes for job in jobs), key=lambda job: job.position)
        self._begun.update({job.item.case.id: job for job in every})
        for lane, _ in lanes:
            lane.jobs.clear()
        last = max((job.item.iterations for job in every), default=0) - 1
        for number in range(last + 1):
            async with asyncio.TaskGroup() as group:
                for lane, jobs in lanes:
                    self._work_on(group, lane, iter([(job, number) for job in jobs if number in job.left]))
            left = [job for job in every if job.item.case.id in self._begun]
            if number < last and left and may_stop([(job.item.suite.path, self._so_far(job)) for job in every]):
                for job in left:
                    done = self._collected.get(job.item.case.id, list(job.done))
                    await self._finish(job, done, job.item.iterations - len(done))
                return

    def _so_far(self, job: Job) -> CaseResult:
        found = self._done.get(job.item.case.id) or self._collected.get(job.item.case.id)
        return case_of(job.item.case, found if found is not None else job.done)

    def unfinished(self) -> list[tuple[Job, CaseResult]]:
        waiting = (job for lane in self._lanes.values() for job in lane.jobs)
        found = [*self._begun.values(), *self._nothing_left, *waiting, *self._recorded]
        return [(job, self._given_up(job)) for job in sorted(found, key=lambda job: job.position)]

    def _given_up(self, job: Job) -> CaseResult:
        there = self._collected.get(job.item.case.id, job.done)
        known = {iteration.index for iteration in there}
        missing = [
            missing_iteration(job.item.case, index, _TIME_LIMIT_REACHED, _TIME_LIMIT)
            for index in job.left
            if index not in known
        ]
        return case_of(job.item.case, [*there, *missing])

    def _put(self, job: Job) -> None:
        if not job.left:
            self._nothing_left.append(job)
            return
        spec = job.item.agent
        lane = self._lanes.get(id(spec))
        if lane is None:
            width = min(limit for limit in (spec.concurrency, self._limits.concurrency) if limit is not None)
            lane = self._lanes[id(spec)] = _AgentQueue(width)
        if id(job.agent) not in lane.conversations:
            lane.conversations[id(job.agent)] = Conversations(
                spec, self._attachments, lane.width, seed=self._seed, progress=self._progress
            )
        lane.add(job)

    def _queue(self, lane: _AgentQueue) -> Iterator[tuple[Job, int]]:
        while lane.jobs:
            job = lane.jobs.popleft()
            self._begun[job.item.case.id] = job
            for index in job.left:
                yield job, index

    async def _work(self, lane: _AgentQueue, queue: Iterator[tuple[Job, int]]) -> None:
        for job, index in queue:
            # The agent's limit is acquired first: cases that wait for one agent must not block other agents. The job
            # stays registered as started until it is scored.
            async with lane.under_way:
                await self._under_way.acquire()
                try:
                    exchanges = await lane.conversations[id(job.agent)].converse(job, index)
                except BaseException:
                    self._under_way.release()
                    raise
            try:
                # While judges score its answers, the agent is free for other cases.
                await self._add(job, await self._rated(job, index, exchanges))
            finally:
                self._under_way.release()

    async def _rated(self, job: Job, index: int, exchanges: Sequence[TurnRecord]) -> IterationResult:
        step = Step(job.item.case.name, "scoring")
        self._progress.began(step)
        try:
            return await rate_iteration(job.item.case, index, exchanges, job.plan.catalog, job.unjudged)
        finally:
            self._progress.ended(step)

    async def _score_recorded(self, group: asyncio.TaskGroup, further: int) -> None:
        """Score recorded answers one after the other, beside as many further tasks; no agent is called."""
        for job in self._recorded:
            # A task for which no answer is left is not started.
            if further:
                group.create_task(self._score_recorded(group, further - 1))
                further = 0
            if job.item.recorded is None:
                continue
            self._begun[job.item.case.id] = job
            exchange = recorded_exchange(job, job.item.recorded)
            await self._add(job, await rate_iteration(job.item.case, 0, [exchange], job.plan.catalog, job.unjudged))
            # Rule metrics never wait; without this pause, signals and the time limit would have to.
            await asyncio.sleep(0)

    async def _add(self, job: Job, iteration: IterationResult) -> None:
        there = self._collected.setdefault(job.item.case.id, list(job.done))
        there.append(self._iterated(job, iteration))
        self._progress.iterated(job.item.case.id)
        if len(there) == job.item.iterations:
            await self._finish(job, there)

    async def _finish(self, job: Job, iterations: Sequence[IterationResult], unneeded: int = 0) -> None:
        result = await rate_case(job.item.case, iterations, job.plan.catalog, unneeded)
        if self.may_stop is not None:
            self._done[job.item.case.id] = list(iterations)
        self._collected.pop(job.item.case.id, None)
        del self._begun[job.item.case.id]
        self._finished(job, result)
