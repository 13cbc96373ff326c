"""Scores recorded traces: read one by one, scored so many at once, and written down in their order.

Memory grows only with what analyses need of each trace: the journal holds them in full.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agenteval.agents.replay.trace import BadLine, Trace
from agenteval.agents.replay.trace_files import read_traces
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.process.interrupt import until_signal
from agenteval.core.text.redact import Redactor
from agenteval.metrics.base import Observation
from agenteval.metrics.scoring import MetricCatalog, score_turn
from agenteval.results.analysis.answers import EvaluatedAnswer, evaluated
from agenteval.results.archive import without_texts
from agenteval.results.masking import redacted
from agenteval.results.model import CaseResult, IterationResult, TurnResult
from agenteval.run.cases.retention import Outlines
from agenteval.run.cases.streamed_cases import StreamedCases
from agenteval.run.journal.journal import Journal
from agenteval.run.progress import Progress
from agenteval.run.runner.aggregated import aggregated
from agenteval.run.runner.execution import Execution, asked_models, budget_warnings
from agenteval.suite.case_ids import content_id, excerpt
from agenteval.suite.model import Suite

# So many broken lines are named one by one; more are counted.
_NAMED = 20
# Traces read ahead of the one that is written next, for each that may be scored at once.
_AHEAD = 4


@dataclass(frozen=True)
class TracePlan:
    """What to score, and where to tell about it.

    Attributes:
        keep_going: a broken line is a warning, and the rest is scored.
        wanted: whether a trace is among those that are asked for, by the id, name and tags of its case.
        compared: scores must stay in memory, as they will be compared with a baseline.
        named: whether somebody wants to know of a case, whatever became of it.
    """

    run_id: str
    suites: tuple[Suite, ...]
    traces: Path
    keep_going: bool
    wanted: Callable[[str, str, Iterable[str]], bool]
    compared: bool
    named: Callable[[CaseResult], bool]
    concurrency: int
    catalog: MetricCatalog
    journal: Path
    redact: Redactor = field(repr=False)
    progress: Progress


def score_traces(plan: TracePlan) -> Execution:
    """Score every trace with every suite.

    Raises:
        ConfigError: a line is no trace (with every such line), or a metric cannot exist on this machine.
        InfrastructureError: the journal cannot be written.
    """
    for suite in plan.suites:
        for metric in suite.metrics:
            plan.catalog.get(metric)
    started, clock = time.time(), time.perf_counter()
    runner = _Runner(plan)
    asyncio.run(runner.run())
    gateway = plan.catalog.resources.gateway
    asked = asked_models(gateway)
    summary = runner.streamed.summary(asked)
    return Execution(
        run_id=plan.run_id,
        started=started,
        duration_s=time.perf_counter() - clock,
        cases=runner.streamed.cases(),
        summary=summary,
        asked=asked,
        total=summary.cases,
        answers=runner.answers,
        archive=runner.streamed.archive,
        plugins=tuple(plan.catalog.resources.graders.plugins),
        signal=runner.signal,
        warnings=(*budget_warnings(gateway), *map(str, runner.bad_lines)),
    )


class _Runner:
    """Holds what has been scored so far, so that a signal loses none of it."""

    def __init__(self, plan: TracePlan) -> None:
        self._plan = plan
        self.signal: int | None = None
        self.streamed = StreamedCases(plan.journal, without_texts if plan.compared else Outlines(plan.named))
        self.answers: dict[str, list[EvaluatedAnswer]] = {suite.path: [] for suite in plan.suites}
        self._named: list[Problem] = []
        self._bad = self._finished = 0

    @property
    def bad_lines(self) -> list[Problem]:
        """The lines that are no traces; of very many, the number of those that are not named."""
        more = self._bad - len(self._named)
        rest = [Problem(f"{more} more lines are no traces", file=str(self._plan.traces))] if more else []
        return [*self._named, *rest]

    async def run(self) -> None:
        try:
            self.signal = await until_signal(self._score_all())
        finally:
            await self._plan.catalog.resources.close()
        if self._bad and not self._plan.keep_going:
            raise ConfigError(self.bad_lines)

    async def _score_all(self) -> None:
        plan = self._plan
        await plan.catalog.resources.start()
        with plan.progress, Journal(plan.journal) as journal:
            journal.begin(plan.run_id, {suite.path: suite.fingerprint for suite in plan.suites})
            for suite in plan.suites:
                await self._score_suite(suite, journal)

    async def _score_suite(self, suite: Suite, journal: Journal) -> None:
        limit = asyncio.Semaphore(self._plan.concurrency)
        under_way: deque[asyncio.Task[tuple[_TraceCase, CaseResult]]] = deque()

        async def score(case: _TraceCase) -> tuple[_TraceCase, CaseResult]:
            async with limit:
                return case, await _score(suite, case, self._plan.catalog)

        try:
            for case in self._wanted(suite):
                under_way.append(asyncio.create_task(score(case)))
                if len(under_way) > self._plan.concurrency * _AHEAD:
                    self._finish(suite, journal, *await under_way.popleft())
            while under_way:
                self._finish(suite, journal, *await under_way.popleft())
        finally:
            for task in under_way:
                task.cancel()

    def _finish(self, suite: Suite, journal: Journal, case: _TraceCase, result: CaseResult) -> None:
        clean, text = redacted(result, self._plan.redact)
        answer = evaluated(clean, clean.iterations[0], case.trace.persona, case.trace.record)
        place = journal.add(suite.path, text)
        self.streamed.add(suite.path, self._finished, clean, text, place)
        self._finished += 1
        self._plan.progress.finished(clean)
        self.answers[suite.path].append(answer)

    def _wanted(self, suite: Suite) -> Iterator[_TraceCase]:
        """The traces as cases; broken lines are noted."""
        repeats: Counter[str] = Counter()
        for item in read_traces(self._plan.traces):
            if isinstance(item, BadLine):
                self._note(item)
            elif not self._bad or self._plan.keep_going:
                case = _case(suite, item, repeats)
                if self._plan.wanted(case.id, case.name, case.tags):
                    yield case

    def _note(self, bad: BadLine) -> None:
        self._bad += 1
        if len(self._named) < _NAMED:
            self._named.append(Problem(bad.message, file=str(bad.file), line=bad.line))


@dataclass(frozen=True, slots=True)
class _TraceCase:
    """A trace with what identifies it as a case."""

    id: str
    name: str
    tags: tuple[str, ...]
    cluster: str
    trace: Trace


def _case(suite: Suite, trace: Trace, repeats: Counter[str]) -> _TraceCase:
    """The same question of the same persona is the same case in every recording; repeats are told apart by order."""
    key = content_id([trace.persona, trace.input])
    repeats[key] += 1
    return _TraceCase(
        id=f"{suite.path}::{key}" + (f"#{repeats[key]}" if repeats[key] > 1 else ""),
        name=excerpt(trace.input) or trace.trace_id,
        tags=(f"persona:{trace.persona}",) if trace.persona else (),
        cluster=key,
        trace=trace,
    )


async def _score(suite: Suite, case: _TraceCase, catalog: MetricCatalog) -> CaseResult:
    trace = case.trace
    observation = Observation(
        input=trace.input,
        response=trace.output,
        latency_ms=trace.duration_ms,
        case=case.name,
        iteration=trace.iteration,
        trace=trace.record,
    )
    metrics = [metric for metric in suite.metrics if metric.is_for(case.id, case.name, case.tags)]
    scores = await score_turn(metrics, observation, catalog)
    turn = TurnResult(
        index=0,
        input=trace.input,
        ground_truth=None,
        response=trace.output,
        latency_ms=trace.duration_ms,
        scores=scores,
    )
    status, final = aggregated([turn], suite.aggregate, metrics)
    return CaseResult(
        id=case.id,
        name=case.name,
        tags=list(case.tags),
        cluster=case.cluster,
        status=status,
        score=final,
        iterations=[IterationResult(index=0, status=status, score=final, turns=[turn])],
    )
