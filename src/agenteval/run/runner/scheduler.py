"""Runs cases concurrently, within the limits of the run and of each agent, and hands out results as they finish."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from agenteval.metrics.scoring import MetricCatalog
from agenteval.results.model import CaseResult, IterationResult
from agenteval.run.attachments.attachments import Attachments
from agenteval.run.plan import Job, RunLimits
from agenteval.run.runner.attempts import Retrying
from agenteval.run.runner.conversation import Conversing, Exchange, recorded_exchange
from agenteval.run.runner.scoring import case_of, missing_iteration, rate_case, rate_iteration

_TIME_IS_UP = "not run: the time is up"

Finished = Callable[[Job, CaseResult], None]

Iterated = Callable[[Job, IterationResult], None]


def _ignore(_job: Job, _iteration: IterationResult) -> None:
    """Nobody wants to know."""


async def run_jobs(
    jobs: Iterable[Job], catalog: MetricCatalog, limits: RunLimits, finished: Finished, iterated: Iterated = _ignore
) -> list[tuple[Job, CaseResult]]:
    """Run every job.

    Args:
        jobs: what to run; those of one agent in this order. Either all have recorded answers, and are drawn one by
            one as earlier ones finish, or none has.
        catalog: the metrics.
        limits: of concurrency and time.
        finished: receives each case, in the order in which they end; what it raises ends the run.
        iterated: receives each iteration as it ends.

    Returns:
        The cases that did not finish within the time limit; their missing iterations are errors.
    """
    scheduler = _Scheduler(jobs, catalog, limits, finished, iterated)
    if limits.run_s is not None and limits.run_s <= 0:
        return scheduler.unfinished()
    try:
        async with asyncio.timeout(limits.run_s) as limit:
            await scheduler.run()
    except ExceptionGroup as problems:
        # Agents' and metrics' errors are results; what is left concerns the run as a whole.
        raise problems.exceptions[0] from None
    except TimeoutError:
        if not limit.expired():
            raise
    return scheduler.unfinished()


@dataclass
class _Lane:
    """One agent: what it is still to be asked, and how many conversations it takes at once."""

    conversing: Conversing
    conversations: asyncio.Semaphore
    jobs: deque[Job] = field(default_factory=deque)
    iterations: int = 0

    def add(self, job: Job) -> None:
        """One more job, after those that are there."""
        self.jobs.append(job)
        self.iterations += len(job.left)


class _Scheduler:
    """Holds what has ended of cases that have not."""

    def __init__(
        self, jobs: Iterable[Job], catalog: MetricCatalog, limits: RunLimits, finished: Finished, iterated: Iterated
    ) -> None:
        self._catalog = catalog
        self._limits = limits
        self._finished = finished
        self._iterated = iterated
        self._under_way = asyncio.Semaphore(limits.concurrency)
        self._attachments = Attachments()
        # What was not begun, by agent, and what was begun and has not ended.
        self._lanes: dict[int, _Lane] = {}
        self._nothing_left: deque[Job] = deque()
        self._begun: dict[str, Job] = {}
        self._collected: dict[str, list[IterationResult]] = {}
        drawn = iter(jobs)
        self._recorded: Iterator[Job] = iter(())
        for job in drawn:
            if job.recorded is not None:
                self._recorded = chain((job,), drawn)
                break
            self._put(job)

    async def run(self) -> None:
        async with self._attachments, asyncio.TaskGroup() as group:
            while self._nothing_left:
                job = self._nothing_left.popleft()
                self._begun[job.case.id] = job
                await self._finish(job, job.done)
            for _ in range(self._limits.concurrency):
                group.create_task(self._score_recorded())
            for lane in self._lanes.values():
                queue = self._queue(lane)
                for _ in range(min(self._limits.concurrency, lane.iterations)):
                    group.create_task(self._work(lane, queue))

    def unfinished(self) -> list[tuple[Job, CaseResult]]:
        """Return the cases that have not finished, each missing iteration as an error."""
        waiting = (job for lane in self._lanes.values() for job in lane.jobs)
        found = [*self._begun.values(), *self._nothing_left, *waiting, *self._recorded]
        return [(job, self._given_up(job)) for job in sorted(found, key=lambda job: job.position)]

    def _given_up(self, job: Job) -> CaseResult:
        there = self._collected.get(job.case.id, job.done)
        known = {iteration.index for iteration in there}
        missing = [missing_iteration(job.case, index, _TIME_IS_UP) for index in job.left if index not in known]
        return case_of(job.case, [*there, *missing])

    def _put(self, job: Job) -> None:
        """Into the lane of its agent, if anything is left to run."""
        if not job.left:
            self._nothing_left.append(job)
            return
        key = id(job.agent.agent)
        if key not in self._lanes:
            width = min(job.agent.spec.concurrency or self._limits.concurrency, self._limits.concurrency)
            attempts = Retrying(job.agent.spec, width, self._catalog.resources.seed)
            conversing = Conversing(self._attachments, attempts, self._limits.case_s)
            self._lanes[key] = _Lane(conversing, asyncio.Semaphore(width))
        self._lanes[key].add(job)

    def _queue(self, lane: _Lane) -> Iterator[tuple[Job, int]]:
        """What to run, in the order of the suites."""
        while lane.jobs:
            job = lane.jobs.popleft()
            self._begun[job.case.id] = job
            for index in job.left:
                yield job, index

    async def _work(self, lane: _Lane, queue: Iterator[tuple[Job, int]]) -> None:
        for job, index in queue:
            exchanges = await self._asked(lane, job, index)
            try:
                # While its answers are judged, the agent may be asked by others.
                iteration = await rate_iteration(job.case, index, exchanges, self._catalog)
                await self._add(job, iteration)
            finally:
                self._under_way.release()

    async def _score_recorded(self) -> None:
        """Score recorded answers one after the other; no agent is asked."""
        for job in self._recorded:
            if job.recorded is None:
                continue
            self._begun[job.case.id] = job
            exchange = recorded_exchange(job, job.recorded)
            await self._add(job, await rate_iteration(job.case, 0, [exchange], self._catalog))
            # Rules never wait, so signals and the time limit would.
            await asyncio.sleep(0)

    async def _asked(self, lane: _Lane, job: Job, index: int) -> list[Exchange]:
        """The conversation of one iteration, which stays under way when it has ended."""
        # The agent's turn comes first: who waits for one agent must not keep others from being asked.
        async with lane.conversations:
            await self._under_way.acquire()
            try:
                return await lane.conversing.converse(job, index)
            except BaseException:
                self._under_way.release()
                raise

    async def _add(self, job: Job, iteration: IterationResult) -> None:
        self._iterated(job, iteration)
        there = self._collected.setdefault(job.case.id, list(job.done))
        there.append(iteration)
        if len(there) == job.iterations:
            await self._finish(job, there)

    async def _finish(self, job: Job, iterations: Sequence[IterationResult]) -> None:
        result = await rate_case(job.case, iterations, self._catalog)
        self._collected.pop(job.case.id, None)
        del self._begun[job.case.id]
        self._finished(job, result)
