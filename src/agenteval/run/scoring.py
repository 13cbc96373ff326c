"""Turns an agent's answers into results: scores of turns, and the status of iterations and cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agenteval.agents.base import Reply, Request
from agenteval.core.errors import InfrastructureError
from agenteval.core.llm.models import NotAskedError
from agenteval.core.text import composed
from agenteval.metrics.base import Observation
from agenteval.metrics.scoring import MetricCatalog, score_case, score_turn
from agenteval.results.case import CaseResult, CaseStatus, IterationResult, NotAsked, Score, TurnResult
from agenteval.results.rollup import (
    aggregated_status,
    case_status,
    final_score,
    has_weight,
    iteration_status,
    mean,
    mean_score,
    passes,
    strict_case_status,
    turn_means,
)
from agenteval.run.conversation import TurnRecord
from agenteval.suite.model import Case, MetricConfig

if TYPE_CHECKING:
    from agenteval.suite.evaluation import Aggregate


def aggregated(
    turns: Sequence[TurnResult], aggregate: Aggregate, metrics: Iterable[MetricConfig]
) -> tuple[CaseStatus, float | None]:
    """Return the status and the final score of one iteration of a case.

    Without the scores of judges that were not called there is no final score. The iteration failed nevertheless if no
    scores of these judges could reach the threshold.
    """
    added = {metric.id: metric for metric in metrics if metric.requested_by == "config"}
    weighed = _only(turns, lambda name: name not in added and has_weight(name, aggregate))
    final = None if _is_incomplete(weighed) else final_score(turn_means(weighed), aggregate)
    status = aggregated_status(weighed, final, aggregate.threshold)
    if status == "skipped" and passes(_highest_possible(weighed, aggregate), aggregate.threshold) is False:
        status = "failed"
    if not added or status in {"error", "failed"}:
        return status, final
    gating = _only(turns, lambda name: name in added and added[name].gating)
    broken = {(turn.index, score.id) for turn in gating for score in turn.scores if score.status == "error"}
    besides = iteration_status(gating, broken)
    return (besides if besides in {"error", "failed"} else status), final


def _is_incomplete(weighed: Iterable[TurnResult]) -> bool:
    return any(score.status == "error" or score.not_asked for turn in weighed for score in turn.scores)


def _highest_possible(weighed: Iterable[TurnResult], aggregate: Aggregate) -> float | None:
    """Return the final score if every judge that was not called had given the highest score."""
    best = [
        turn.model_copy(
            update={
                "scores": [
                    score.model_copy(update={"score": 1.0}) if score.not_asked else score for score in turn.scores
                ]
            }
        )
        for turn in weighed
    ]
    return final_score(turn_means(best), aggregate)


def _only(turns: Iterable[TurnResult], wanted: Callable[[str], bool]) -> list[TurnResult]:
    return [
        turn.model_copy(update={"scores": [score for score in turn.scores if wanted(score.id)]}) for turn in turns
    ]


async def rate_iteration(
    case: Case,
    index: int,
    exchanges: Sequence[TurnRecord],
    catalog: MetricCatalog,
    unjudged: NotAskedError | None = None,
) -> IterationResult:
    """Return one iteration with the scores of its turns; `unjudged` is as for `score_turn`."""
    return rated(case, index, [await _turn_result(case, exchange, catalog, unjudged) for exchange in exchanges])


def missing_iteration(case: Case, index: int, reason: str, not_asked: NotAsked) -> IterationResult:
    """Return an iteration that did not finish because of a limit of the run: every turn is an error."""
    turns = [
        TurnResult(
            index=number,
            input=turn.input,
            ground_truth=turn.ground_truth,
            response=None,
            error=reason,
            not_asked=not_asked,
        )
        for number, turn in enumerate(case.turns)
    ]
    return rated(case, index, turns)


async def rate_case(
    case: Case, iterations: Sequence[IterationResult], catalog: MetricCatalog, unneeded: int = 0
) -> CaseResult:
    """Return the case over all its iterations, with the scores of case metrics."""
    found = sorted(iterations, key=lambda iteration: iteration.index)
    for metric in case.metrics:
        found = await _with_case_metric(case, found, metric, catalog)
    return case_of(case, found, unneeded)


def case_of(case: Case, iterations: Sequence[IterationResult], unneeded: int = 0) -> CaseResult:
    """Return the case over all its rated iterations."""
    status = strict_case_status if case.strict else case_status
    return CaseResult(
        id=case.id,
        name=case.name,
        tags=list(case.tags),
        cluster=case.cluster,
        line=case.line,
        strict=case.strict,
        status=status([iteration.status for iteration in iterations]),
        score=mean([iteration.score for iteration in iterations]),
        iterations=sorted(iterations, key=lambda iteration: iteration.index),
        unneeded=unneeded,
    )


async def _with_case_metric(
    case: Case, iterations: Sequence[IterationResult], metric: MetricConfig, catalog: MetricCatalog
) -> list[IterationResult]:
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
    return rated(case, iteration.index, turns)


def rated(case: Case, index: int, turns: list[TurnResult]) -> IterationResult:
    """Return an iteration with status and score, computed from the scores of its turns."""
    if case.aggregate is None:
        broken = any(score.status == "error" for turn in turns for score in turn.scores)
        status, score = iteration_status(turns, _fatal_metrics(case) if broken else ()), mean_score(turns)
    else:
        status, score = aggregated(turns, case.aggregate, case.all_metrics)
    return IterationResult(index=index, status=status, score=score, turns=turns)


def _fatal_metrics(case: Case) -> frozenset[tuple[int, str]]:
    last = len(case.turns) - 1
    placed = [(number, metric) for number, turn in enumerate(case.turns) for metric in turn.metrics]
    placed += [(last, metric) for metric in case.metrics]
    return frozenset((number, metric.id) for number, metric in placed if metric.fail_on_error and metric.gating)


async def _turn_result(
    case: Case, exchange: TurnRecord, catalog: MetricCatalog, unjudged: NotAskedError | None
) -> TurnResult:
    request, answer = exchange.request, exchange.answer
    turn = case.turns[request.turn]
    error = answer.error
    if answer.reply is not None:
        try:
            return await _scored(case, exchange, answer.reply, catalog, unjudged)
        except InfrastructureError:
            raise
        except Exception as failure:  # noqa: BLE001 - a reply that cannot be scored must fail a turn, not the run
            error = f"the reply could not be scored: {type(failure).__name__}: {failure}"
    return TurnResult(
        index=request.turn,
        input=turn.input,
        ground_truth=turn.ground_truth,
        response=None,
        error=error,
        not_asked=answer.not_asked,
        unavailable=answer.unavailable,
        retries=answer.retries,
    )


async def _scored(
    case: Case, exchange: TurnRecord, reply: Reply, catalog: MetricCatalog, unjudged: NotAskedError | None
) -> TurnResult:
    request, passages = exchange.request, exchange.passages
    turn = case.turns[request.turn]
    latency_ms = reply.latency_ms
    if latency_ms is None and exchange.trace is None and not reply.cached:
        latency_ms = round(exchange.answer.elapsed_ms, 3)
    trace = exchange.trace
    if trace is None:
        trace = _as_trace(case, request, reply, latency_ms) if case.aggregate else {}
    observation = Observation(
        input=turn.input,
        response=composed(reply.response),
        ground_truth=turn.ground_truth and composed(turn.ground_truth),
        retrieval_context=passages,
        tool_calls=reply.tool_calls,
        latency_ms=latency_ms,
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
        latency_ms=latency_ms,
        usage=reply.usage,
        retries=exchange.answer.retries,
        cached=reply.cached,
        scores=await score_turn(turn.metrics, observation, catalog, unjudged),
    )


def _as_trace(case: Case, request: Request, reply: Reply, latency_ms: float | None) -> Mapping[str, Any]:
    from agenteval.results.record import trace_of_reply

    return trace_of_reply(
        input=request.input,
        output=reply.response,
        duration_ms=latency_ms,
        persona=case.persona,
        iteration=request.iteration,
        # Not the session, which no other run has: samples and cached judgements are found by it.
        trace_id=f"{request.case_id}#{request.iteration}",
        metadata=reply.metadata,
        expected=case.turns[request.turn].config,
        usage=reply.usage,
        tool_calls=reply.tool_calls,
    )
