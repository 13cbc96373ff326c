"""The answers that analyses read, and their lines in per_trace.jsonl."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from agenteval.core.records import dataclass, field
from agenteval.results.case import CaseResult, IterationResult, Score, ToolCall, TurnResult
from agenteval.results.record import (
    FAILED,
    as_number,
    is_finite,
    is_true,
    observations_of,
    reported_error,
    token_usage,
    value_at,
    was_successful,
)
from agenteval.results.rollup import has_weight, passes, turn_means

if TYPE_CHECKING:
    from agenteval.suite.evaluation import Aggregate


# The keys of these figures in traces.
_PLACES = ("tool_calling", "tool_calling_metrics", "tool_metrics", "tool_usage")
_CHECKS = ("all_calls_successful", "appropriate_selection", "correct_parameters", "proper_timing", "handles_failures")


def tool_checks(trace: Mapping[str, Any], calls: Sequence[ToolCall]) -> dict[str, tuple[float, ...]]:
    """Return check → shares of tool calls that meet it.

    A trace may contain the shares, in one mapping or in a list of mappings. Without them, the success of all calls is
    computed from the recorded calls, else from the observations of tools in its timeline.
    """
    found: dict[str, list[float]] = {}
    for entry in _entries(trace):
        for check in _CHECKS:
            found.setdefault(check, []).extend(_shares(entry.get(check)))
    succeeded = [call.error is None for call in calls] or list(_in_timeline(trace))
    if succeeded and not found.get("all_calls_successful"):
        found["all_calls_successful"] = [sum(succeeded) / len(succeeded)]
    return {check: tuple(shares) for check, shares in found.items() if shares}


def _entries(trace: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    value = next((found for place in _PLACES if (found := value_at(trace, place)) is not None), None)
    entries = value if isinstance(value, list) else [value]
    return [entry for entry in entries if isinstance(entry, Mapping)]


def _in_timeline(trace: Mapping[str, Any]) -> Iterator[bool]:
    for item in observations_of(trace):
        if isinstance(item, Mapping) and "tool" in str(item.get("type")).lower():
            # FluxLoop stores fields that it does not define below ``raw``.
            parts = [part for part in (item, item.get("raw")) if isinstance(part, Mapping)]
            yield not any(map(_tells_of_error, parts)) and not _is_error(item.get("output"))


def _is_error(output: Any) -> bool:
    """Return whether a result is an error, as MCP and Anthropic mark it; other fields are the tool's own."""
    return isinstance(output, Mapping) and any(is_true(output.get(name)) for name in ("isError", "is_error"))


def _tells_of_error(part: Mapping[str, Any]) -> bool:
    success = part.get("success")
    return (
        reported_error(part) is not None
        or _is_error(part)
        or any(str(part.get(name)).lower() in FAILED for name in ("level", "status"))
        or (success is not None and not is_true(success))
    )


def _shares(value: Any) -> Iterator[float]:
    """Return shares from a boolean, a number, a text such as "false", or a list of these; ``None`` is ignored.

    A number that is not finite, an object, and a text that neither agrees nor is a number are not met.
    """
    if isinstance(value, list):
        for item in value:
            yield from _shares(item)
    elif value is not None:
        number = as_number(value) if isinstance(value, str) else value
        if isinstance(number, int | float) and not isinstance(number, bool):
            yield float(min(1, max(0, number))) if is_finite(number) else 0.0
        else:
            yield float(is_true(value))


@dataclass(frozen=True)
class EvaluatedAnswer:
    """One answer, or one recorded trace, with its scores.

    Attributes:
        order: position in time: the iteration of the trace or run.
        tokens: input and output tokens together.
        scores: metric id → score, 0..1; absent scores are in ``absent``.
        final_score: the aggregated score; ``None`` without scores.
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

    def as_json(self) -> dict[str, Any]:
        """Return one line of per_trace.jsonl."""
        content: dict[str, Any] = {
            "trace_id": self.trace_id or self.case_id,
            "iteration": self.order,
            "persona": self.persona,
            "success": self.success,
            "duration_ms": self.duration_ms,
            "scores": dict(self.scores),
            "final_score": self.final_score,
            "pass": self.passed,
            "reasons": dict(self.reasons),
            "meta": {"case_id": self.case_id, "name": self.name},
        }
        if self.absent:
            content["absent"] = dict(self.absent)
        if self.tokens is not None:
            content["total_tokens"] = self.tokens
        return content


_SHORT = 300

# One shared object saves memory for very many answers.
_NONE: Mapping[str, Any] = MappingProxyType({})


def evaluated(
    case: CaseResult, iteration: IterationResult, persona: str | None, trace: Mapping[str, Any]
) -> EvaluatedAnswer:
    """Return the answer of one iteration, or of one recorded trace."""
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
        absent={it.id: (it.error or it.reason or it.status)[:_SHORT] for it in scores if it.score is None} or _NONE,
        final_score=iteration.score,
        passed=_passed(iteration),
        reasons=dict(_reasons(scores)) or _NONE,
        verdicts=_verdicts(scores) or _NONE,
        tool_checks=tool_checks(trace, [call for turn in turns for call in turn.tool_calls]) or _NONE,
    )


def _passed(iteration: IterationResult) -> bool | None:
    if any(turn.error for turn in iteration.turns):
        return False
    return {"passed": True, "failed": False}.get(iteration.status)


def _success(trace: Mapping[str, Any], iteration: IterationResult) -> bool:
    if any(turn.error for turn in iteration.turns):
        return False
    said = was_successful(trace)
    return iteration.status != "failed" and trace.get("output") is not None if said is None else said


def _tokens(trace: Mapping[str, Any], turns: Sequence[TurnResult]) -> int | None:
    reported = [turn.usage for turn in turns if turn.usage is not None]
    if reported:
        return sum((usage.input_tokens or 0) + (usage.output_tokens or 0) for usage in reported)
    recorded = token_usage(trace)
    return None if recorded is None else round(recorded.total)


def _order(trace: Mapping[str, Any], iteration: IterationResult) -> int:
    order = trace.get("iteration")
    return order if isinstance(order, int) and not isinstance(order, bool) else iteration.index


def _verdicts(scores: Sequence[Score]) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for score in scores:
        if score.passed is not None:
            found[score.id] = found.get(score.id, True) and score.passed
    return found


def _reasons(scores: list[Score]) -> Iterator[tuple[str, str]]:
    for score in scores:
        if score.reason and score.score is not None and score.score < 1:
            yield score.id, score.reason[:_SHORT]
