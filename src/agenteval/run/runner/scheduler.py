"""Runs cases concurrently, within the limits of the run and of each agent, and reports cases as they finish."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from agenteval.results.case import CaseResult, IterationResult, NotAsked
from agenteval.run.attachments.attachments import Attachments
from agenteval.run.plan import Job, RunLimits
from agenteval.run.progress import Progress, SilentProgress, Step
from agenteval.run.runner.attempts import Retrying
from agenteval.run.runner.conversation import Conversing, Exchange, recorded_exchange
from agenteval.run.runner.scoring import case_of, missing_iteration, rate_case, rate_iteration

_TIME_LIMIT_REACHED = "not run: the time limit was reached"
_TIME_LIMIT = NotAsked(cause="time", limit="time limit of the run")

Finished = Callable[[Job, CaseResult], None]

# Returns the iteration to keep until its case is finished.
Iterated = Callable[[Job, IterationResult], IterationResult]


def _keep(_job: Job, iteration: IterationResult) -> IterationResult:
    """Return the iteration unchanged."""
    return iteration


async def run_jobs(
    jobs: Iterable[Job],
    limits: RunLimits,
    finished: Finished,
    iterated: Iterated = _keep,
    *,
    seed: int | None = None,
    progress: Progress | None = None,
) -> list[tuple[Job, CaseResult]]:
    """Run every job.

    Args:
        jobs: the jobs; jobs of one agent start in this order. Either all jobs have recorded answers, and are
            then drawn one by one, or none has.
        limits: limits of concurrency and time.
        finished: receives each case as it finishes; an exception that it raises ends the run.
        iterated: receives each iteration as it finishes, and returns the iteration to keep for its case.
        seed: the random seed of the waits before retries; ``None`` for a random one.
        progress: shows the steps in progress.

    Returns:
        The cases that did not finish within the time limit; their missing iterations are errors.
    """
    scheduler = _Scheduler(jobs, limits, finished, iterated, seed=seed, progress=progress or SilentProgress())
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
class _Lane:
    """The waiting jobs of one agent, or of two that take turns, and the limit of simultaneous conversations.

    Attributes:
        width: the limit.
        conversing: what the conversations with each agent share.
    """

    width: int
    conversing: dict[int, Conversing] = field(default_factory=dict)
    jobs: deque[Job] = field(default_factory=deque)
    iterations: int = 0

    def __post_init__(self) -> None:
        self.conversations = asyncio.Semaphore(self.width)

    def add(self, job: Job) -> None:
        """Append a job."""
        self.jobs.append(job)
        self.iterations += len(job.left)

    async def converse(self, job: Job, index: int) -> list[Exchange]:
        """Send all turns of a case to its agent."""
        return await self.conversing[id(job.agent.agent)].converse(job, index)


class _Scheduler:
    """The state of unfinished cases."""

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
        self._seed = seed
        self._progress = progress
        self._limits = limits
        self._finished = finished
        self._iterated = iterated
        self._under_way = asyncio.Semaphore(limits.concurrency)
        self._attachments = Attachments()
        # Waiting jobs by agent, then jobs that have started and not finished.
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
            group.create_task(self._score_recorded(group, self._limits.concurrency - 1))
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
        missing = [
            missing_iteration(job.case, index, _TIME_LIMIT_REACHED, _TIME_LIMIT)
            for index in job.left
            if index not in known
        ]
        return case_of(job.case, [*there, *missing])

    def _put(self, job: Job) -> None:
        """Put a job into the lane of its agent, unless no iteration is left to run."""
        if not job.left:
            self._nothing_left.append(job)
            return
        spec = job.agent.spec
        key = id(job.beside or spec)
        limits = (spec.concurrency, job.beside.concurrency if job.beside else None, self._limits.concurrency)
        width = min(limit for limit in limits if limit is not None)
        lane = self._lanes.setdefault(key, _Lane(width))
        if width < lane.width:
            lane.width, lane.conversations = width, asyncio.Semaphore(width)
        if id(job.agent.agent) not in lane.conversing:
            lane.conversing[id(job.agent.agent)] = Conversing(
                self._attachments, Retrying(spec, lane.width, self._seed, self._progress)
            )
        lane.add(job)

    def _queue(self, lane: _Lane) -> Iterator[tuple[Job, int]]:
        """Yield the iterations to run, in suite order."""
        while lane.jobs:
            job = lane.jobs.popleft()
            self._begun[job.case.id] = job
            for index in job.left:
                yield job, index

    async def _work(self, lane: _Lane, queue: Iterator[tuple[Job, int]]) -> None:
        for job, index in queue:
            exchanges = await self._asked(lane, job, index)
            try:
                # While judges score its answers, the agent is free for other cases.
                await self._add(job, await self._rated(job, index, exchanges))
            finally:
                self._under_way.release()

    async def _rated(self, job: Job, index: int, exchanges: Sequence[Exchange]) -> IterationResult:
        step = Step(job.case.name, "scoring")
        self._progress.began(step)
        try:
            return await rate_iteration(job.case, index, exchanges, job.plan.catalog, job.unjudged)
        finally:
            self._progress.ended(step)

    async def _score_recorded(self, group: asyncio.TaskGroup, further: int) -> None:
        """Score recorded answers one after the other, beside as many further tasks; no agent is called."""
        for job in self._recorded:
            # A task for which no answer is left is not started.
            if further:
                group.create_task(self._score_recorded(group, further - 1))
                further = 0
            if job.recorded is None:
                continue
            self._begun[job.case.id] = job
            exchange = recorded_exchange(job, job.recorded)
            await self._add(job, await rate_iteration(job.case, 0, [exchange], job.plan.catalog, job.unjudged))
            # Rule metrics never wait; without this pause, signals and the time limit would have to.
            await asyncio.sleep(0)

    async def _asked(self, lane: _Lane, job: Job, index: int) -> list[Exchange]:
        """Return the conversation of one iteration; the job stays registered as started until it is scored."""
        # The agent's limit is acquired first: cases that wait for one agent must not block other agents.
        async with lane.conversations:
            await self._under_way.acquire()
            try:
                return await lane.converse(job, index)
            except BaseException:
                self._under_way.release()
                raise

    async def _add(self, job: Job, iteration: IterationResult) -> None:
        there = self._collected.setdefault(job.case.id, list(job.done))
        there.append(self._iterated(job, iteration))
        if len(there) == job.iterations:
            await self._finish(job, there)

    async def _finish(self, job: Job, iterations: Sequence[IterationResult]) -> None:
        result = await rate_case(job.case, iterations, job.plan.catalog, job.unneeded)
        self._collected.pop(job.case.id, None)
        del self._begun[job.case.id]
        self._finished(job, result)
