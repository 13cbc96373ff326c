"""Turns the results of a case into the answers that analyses read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from agenteval.results.analysis.aggregate import has_weight, passes
from agenteval.results.analysis.tool_checks import tool_checks
from agenteval.results.case import CaseResult, IterationResult, Score, TurnResult
from agenteval.results.record.fields import was_successful
from agenteval.results.record.token_usage import token_usage
from agenteval.results.rollup import turn_means

if TYPE_CHECKING:
    from agenteval.suite.evaluation import Aggregate


@dataclass(frozen=True, slots=True)
class EvaluatedAnswer:
    """One answer, or one recorded trace, with its scores.

    Attributes:
        case_id: id of its case in results.json.
        name: its name in reports.
        trace_id: id of a recorded trace.
        order: position in time: the iteration of the trace or run.
        persona: the persona that asked.
        success: whether there is an answer and the trace reports no failure.
        duration_ms: its latency in ms.
        tokens: input and output tokens together.
        scores: metric id → score, 0..1; absent scores are in ``absent``.
        absent: metric id → why there is no score.
        final_score: the aggregated score; ``None`` without scores.
        passed: whether the answer passed.
        reasons: metric id → why its score is not 1, in short.
        verdicts: metric id → whether its score passed, for metrics that decide themselves.
        tool_checks: check → shares of tool calls that met it, if the trace contains them.
    """

    case_id: str
    name: str
    trace_id: str = ""
    order: int = 0
    persona: str | None = None
    success: bool = True
    duration_ms: float | None = None
    tokens: int | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    final_score: float | None = None
    passed: bool | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    verdicts: Mapping[str, bool] = field(default_factory=dict)
    tool_checks: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def lost(self, aggregate: Aggregate) -> Mapping[str, str]:
        """Return the reasons of the scores that cost the answer points.

        A metric that decides loses points if it fails. Where the aggregate decides, weighed scores below its
        threshold lose points.
        """
        return {
            name: reason
            for name, reason in self.reasons.items()
            if not (
                self.verdicts[name]
                if name in self.verdicts
                else passes(self.scores.get(name, 0.0), aggregate.threshold) or not has_weight(name, aggregate)
            )
        }


_SHORT = 300

# One shared object saves memory for very many answers.
_NONE: Mapping[str, Any] = MappingProxyType({})


def evaluated(
    case: CaseResult, iteration: IterationResult, persona: str | None, trace: Mapping[str, Any]
) -> EvaluatedAnswer:
    """Return the answer of one iteration, or of one recorded trace.

    Args:
        case: the case.
        iteration: the iteration.
        persona: the persona that asked.
        trace: the record of the trace or of the reply.
    """
    turns = iteration.turns
    scores = [score for turn in turns for score in turn.scores]
    durations = [turn.latency_ms for turn in turns if turn.latency_ms is not None]
    return EvaluatedAnswer(
        case_id=case.id,
        name=case.name,
        trace_id=str(trace.get("trace_id") or ""),
        order=_order(trace, iteration),
        persona=persona,
        success=_success(trace, iteration),
        duration_ms=sum(durations) if durations else None,
        tokens=_tokens(trace, turns),
        scores=turn_means(turns),
        absent={score.id: _why_absent(score) for score in scores if score.score is None} or _NONE,
        final_score=iteration.score,
        passed=_passed(iteration),
        reasons=dict(_reasons(scores)) or _NONE,
        verdicts=_verdicts(scores) or _NONE,
        tool_checks=tool_checks(trace, [call for turn in turns for call in turn.tool_calls]) or _NONE,
    )


def _passed(iteration: IterationResult) -> bool | None:
    """Return whether the answer passed; ``None`` if it was not judged. A missing answer did not pass."""
    if any(turn.error for turn in iteration.turns):
        return False
    return {"passed": True, "failed": False}.get(iteration.status)


def _success(trace: Mapping[str, Any], iteration: IterationResult) -> bool:
    """Return the success that the trace reports; without a report, whether there is an answer that did not fail."""
    if any(turn.error for turn in iteration.turns):
        return False
    said = was_successful(trace)
    return iteration.status != "failed" and trace.get("output") is not None if said is None else said


def _tokens(trace: Mapping[str, Any], turns: Sequence[TurnResult]) -> int | None:
    """Return the tokens of the answer, as the agent or the recording reports them."""
    reported = [turn.usage for turn in turns if turn.usage is not None]
    if reported:
        return sum((usage.input_tokens or 0) + (usage.output_tokens or 0) for usage in reported)
    recorded = token_usage(trace)
    return None if recorded is None else round(recorded.total)


def _order(trace: Mapping[str, Any], iteration: IterationResult) -> int:
    order = trace.get("iteration")
    return order if isinstance(order, int) and not isinstance(order, bool) else iteration.index


def _verdicts(scores: Sequence[Score]) -> dict[str, bool]:
    """Return the verdicts of metrics; one that fails in a turn fails."""
    found: dict[str, bool] = {}
    for score in scores:
        if score.passed is not None:
            found[score.id] = found.get(score.id, True) and score.passed
    return found


def _why_absent(score: Score) -> str:
    return (score.error or score.reason or score.status)[:_SHORT]


def _reasons(scores: list[Score]) -> Iterator[tuple[str, str]]:
    for score in scores:
        if score.reason and score.score is not None and score.score < 1:
            yield score.id, score.reason[:_SHORT]
