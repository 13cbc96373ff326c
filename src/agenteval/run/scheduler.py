"""Runs cases: so many at once, each turn under its time limit, results handed out as they finish."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agenteval.agents.base import Agent, Reply, Request, Session
from agenteval.errors import AgentError, ToolRefusedError
from agenteval.metrics.base import Observation
from agenteval.metrics.scoring import MetricCatalog, score_case, score_turn
from agenteval.results.model import CaseResult, IterationResult, Score, TurnResult
from agenteval.results.rollup import (
    aggregated_status,
    case_status,
    iteration_status,
    mean,
    mean_score,
    strict_case_status,
    turn_means,
)
from agenteval.run.attachments import AttachmentError, Attachments
from agenteval.run.retrieval import Retrieval
from agenteval.suite.model import AgentSpec, Case, MetricConfig, Suite, Turn

# After so many turns in a row without an answer the session is given up.
_BROKEN_TURNS = 2


@dataclass(frozen=True)
class BoundAgent:
    """A started agent with what the scheduler must know of its definition."""

    agent: Agent
    spec: AgentSpec


@dataclass(frozen=True)
class Job:
    """A case of a suite, with the agent that answers it; further runs of a case count their iterations on."""

    suite: Suite
    case: Case
    agent: BoundAgent
    iterations: int
    first_iteration: int = 0


Finished = Callable[[Job, CaseResult], None]


async def run_jobs(jobs: Sequence[Job], catalog: MetricCatalog, concurrency: int, finished: Finished) -> None:
    """Run every job; ``finished`` is called once per case, in the order in which cases end.

    Args:
        jobs: what to run.
        catalog: the metrics.
        concurrency: iterations under way at once.
        finished: receives each result; what it raises ends the run.
    """
    queue = iter(_iterations(jobs))
    collected: dict[int, list[IterationResult]] = {}
    attachments = Attachments()

    async def work() -> None:
        for number, job, index in queue:
            result = await _run_iteration(job, index, catalog, attachments)
            done = collected.setdefault(number, [])
            done.append(result)
            if len(done) == job.iterations:
                del collected[number]
                finished(job, await _case_result(job.case, done, catalog))

    workers = min(concurrency, sum(job.iterations for job in jobs))
    try:
        async with attachments, asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(work())
    except ExceptionGroup as problems:
        # Agents' and metrics' errors are results; what is left concerns the run as a whole.
        raise problems.exceptions[0] from None


def _iterations(jobs: Sequence[Job]) -> Iterator[tuple[int, Job, int]]:
    for number, job in enumerate(jobs):
        for index in range(job.first_iteration, job.first_iteration + job.iterations):
            yield number, job, index


async def _case_result(case: Case, iterations: list[IterationResult], catalog: MetricCatalog) -> CaseResult:
    iterations.sort(key=lambda iteration: iteration.index)
    for metric in case.metrics:
        iterations = await _with_case_metric(case, iterations, metric, catalog)
    status = strict_case_status if case.strict else case_status
    return CaseResult(
        id=case.id,
        name=case.name,
        tags=list(case.tags),
        cluster=case.cluster,
        line=case.line,
        status=status([iteration.status for iteration in iterations]),
        score=mean([iteration.score for iteration in iterations]),
        iterations=iterations,
    )


async def _with_case_metric(
    case: Case, iterations: Sequence[IterationResult], metric: MetricConfig, catalog: MetricCatalog
) -> list[IterationResult]:
    """The iterations with what a metric over all of them says; those without a last answer take no part."""
    answered = [iteration for iteration in iterations if iteration.turns[-1].response is not None]
    if not answered:
        return list(iterations)
    observations = [_last_answer(case, iteration) for iteration in answered]
    scores = dict(
        zip(
            (iteration.index for iteration in answered),
            await score_case(metric, observations, catalog),
            strict=True,
        )
    )
    return [
        _with_score(case, iteration, scores[iteration.index]) if iteration.index in scores else iteration
        for iteration in iterations
    ]


def _last_answer(case: Case, iteration: IterationResult) -> Observation:
    turn = iteration.turns[-1]
    return Observation(
        input=turn.input,
        response=turn.response or "",
        tool_calls=tuple(turn.tool_calls),
        latency_ms=turn.latency_ms,
        usage=turn.usage,
        case=case.name,
        turn=turn.index,
        iteration=iteration.index,
    )


def _with_score(case: Case, iteration: IterationResult, score: Score) -> IterationResult:
    last = iteration.turns[-1]
    turns = [*iteration.turns[:-1], last.model_copy(update={"scores": [*last.scores, score]})]
    return _rated(case, iteration.model_copy(update={"turns": turns}))


def _rated(case: Case, iteration: IterationResult) -> IterationResult:
    """The iteration with its status and its score, as the scores of its turns make them."""
    turns = iteration.turns
    if case.aggregate is None:
        status, score = iteration_status(turns, _fatal_metrics(case)), mean_score(turns)
    else:
        from agenteval.analysis.aggregate import final_score

        score = final_score(turn_means(turns), case.aggregate)
        status = aggregated_status(turns, score, case.aggregate.threshold)
    return iteration.model_copy(update={"status": status, "score": score})


async def _run_iteration(job: Job, index: int, catalog: MetricCatalog, attachments: Attachments) -> IterationResult:
    """All turns of a case in one session of its own."""
    session = job.agent.agent.session()
    try:
        return await _converse(job, index, session, catalog, attachments)
    finally:
        await session.end()


async def _converse(
    job: Job, index: int, session: Session, catalog: MetricCatalog, attachments: Attachments
) -> IterationResult:
    retrieval = Retrieval(job.suite.retrieval_tools)
    history: list[Mapping[str, str]] = []
    turns: list[TurnResult] = []
    unanswered = 0
    for number, turn in enumerate(job.case.turns):
        request = _request(job, index, number, tuple(history))
        if unanswered < _BROKEN_TURNS:
            request, answer = await _ask_with_files(session, request, turn, attachments, job.agent.spec.limit_s)
        else:
            answer = _Answer(error=f"not asked: {_BROKEN_TURNS} turns in a row had no answer")
        history.append({"role": "user", "content": turn.input})
        if answer.reply is None:
            unanswered += 1
        else:
            unanswered = 0
            history.append({"role": "assistant", "content": answer.reply.response})
        passages = retrieval.passages(turn, answer.reply) if answer.reply else ()
        turns.append(await _turn_result(job.case, request, answer, passages, catalog))
    return _rated(job.case, IterationResult(index=index, status="skipped", score=None, turns=turns))


@dataclass(frozen=True, slots=True)
class _Answer:
    """A reply, or the reason why there is none."""

    reply: Reply | None = None
    error: str | None = None
    elapsed_ms: float = 0.0


def _request(job: Job, iteration: int, number: int, history: tuple[Mapping[str, str], ...]) -> Request:
    case, turn = job.case, job.case.turns[number]
    return Request(
        input=turn.input,
        case=case.name,
        case_id=case.id,
        turn=number,
        iteration=iteration,
        session=f"{case.id}#{iteration}",
        history=history,
        config=job.agent.spec.config,
        context=turn.context,
    )


async def _ask_with_files(
    session: Session, request: Request, turn: Turn, attachments: Attachments, timeout_s: float
) -> tuple[Request, _Answer]:
    """The request as it was sent, with the turn's files, and what came of it."""
    try:
        attached = await attachments.get(turn.files)
    except AttachmentError as failure:
        return request, _Answer(error=str(failure))
    request = replace(request, files=attached.paths, file_texts=attached.texts)
    return request, await _ask(session, request, turn, timeout_s)


async def _ask(session: Session, request: Request, turn: Turn, timeout_s: float) -> _Answer:
    started = time.perf_counter()
    try:
        async with asyncio.timeout(timeout_s):
            reply = await session.send(request)
    except TimeoutError:
        return _Answer(error=f"no answer within {timeout_s:g} s")
    except ToolRefusedError as failure:
        if not turn.refusals:
            return _Answer(error=str(failure))
        reply = Reply(response=f"raised {failure}", raised=str(failure))
    except AgentError as failure:
        return _Answer(error=str(failure))
    except Exception as failure:  # noqa: BLE001 - a defect in one agent kind must not end the run
        return _Answer(error=f"{type(failure).__name__}: {failure}")
    return _Answer(reply=reply, elapsed_ms=(time.perf_counter() - started) * 1000)


def _fatal_metrics(case: Case) -> frozenset[tuple[int, str]]:
    """Turn and id of the metrics whose errors make the case an error."""
    last = len(case.turns) - 1
    placed = [(number, metric) for number, turn in enumerate(case.turns) for metric in turn.metrics]
    placed += [(last, metric) for metric in case.metrics]
    return frozenset((number, metric.id) for number, metric in placed if metric.fail_on_error)


async def _turn_result(
    case: Case, request: Request, answer: _Answer, passages: tuple[str, ...], catalog: MetricCatalog
) -> TurnResult:
    turn = case.turns[request.turn]
    error = answer.error
    if answer.reply is not None:
        try:
            return await _scored(case, request, _timed(answer.reply, answer.elapsed_ms), passages, catalog)
        except Exception as failure:  # noqa: BLE001 - a reply that cannot be scored costs one turn, not the run
            error = f"the reply could not be scored: {type(failure).__name__}: {failure}"
    return TurnResult(
        index=request.turn, input=turn.input, ground_truth=turn.ground_truth, response=None, error=error
    )


def _timed(reply: Reply, elapsed_ms: float) -> Reply:
    """The reply with our time where the agent knows none of its own."""
    return reply if reply.latency_ms is not None else replace(reply, latency_ms=round(elapsed_ms, 3))


async def _scored(
    case: Case, request: Request, reply: Reply, passages: tuple[str, ...], catalog: MetricCatalog
) -> TurnResult:
    turn = case.turns[request.turn]
    trace = _as_trace(case, request, reply) if case.aggregate else {}
    observation = Observation(
        input=turn.input,
        response=reply.response,
        ground_truth=turn.ground_truth,
        retrieval_context=passages,
        tool_calls=reply.tool_calls,
        latency_ms=reply.latency_ms,
        usage=reply.usage,
        context=request.file_texts or None,
        case=request.case,
        turn=request.turn,
        iteration=request.iteration,
        config=turn.config,
        raised=reply.raised,
        trace=trace,
    )
    return TurnResult(
        index=request.turn,
        input=turn.input,
        ground_truth=turn.ground_truth,
        response=reply.response,
        tool_calls=list(reply.tool_calls),
        retrieval_context=list(passages),
        latency_ms=reply.latency_ms,
        usage=reply.usage,
        scores=await score_turn(turn.metrics, observation, catalog),
    )


def _as_trace(case: Case, request: Request, reply: Reply) -> Mapping[str, Any]:
    """The reply like a recorded trace, which metrics of an aggregate read."""
    from agenteval.traces.model import trace_of_reply

    return trace_of_reply(
        input=request.input,
        output=reply.response,
        duration_ms=reply.latency_ms,
        persona=case.persona,
        iteration=request.iteration,
        trace_id=request.session,
        metadata=reply.metadata,
        expected=case.turns[request.turn].config,
        usage=reply.usage,
        tool_calls=reply.tool_calls,
    )


def checkable(case: Case, catalog: MetricCatalog) -> bool:
    """Whether any metric can say anything about a case, as far as the suite alone tells.

    Builds every metric of the case, also those that turn out not to apply.

    Raises:
        ConfigError: what a metric needs is not on this machine.
    """
    applicable = [
        "ground_truth" not in catalog.get(metric).requires or turn.ground_truth is not None
        for turn in case.turns
        for metric in turn.metrics
    ]
    applicable += [catalog.get(metric) is not None for metric in case.metrics]
    return any(applicable)
