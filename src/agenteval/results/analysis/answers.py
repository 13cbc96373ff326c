"""The answers that analyses read, their statistics, and the outliers among them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

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
from agenteval.suite.evaluation import Analyses

if TYPE_CHECKING:
    from agenteval.suite.evaluation import Aggregate


# The keys of these figures in traces.
_PLACES = ("tool_calling", "tool_calling_metrics", "tool_metrics", "tool_usage")
_CHECKS = (
    "all_calls_successful",
    "appropriate_selection",
    "correct_parameters",
    "proper_timing",
    "handles_failures",
)


def tool_checks(trace: Mapping[str, Any], calls: Sequence[ToolCall]) -> dict[str, tuple[float, ...]]:
    """Return check → shares of tool calls that meet it.

    A trace may contain the shares, in one mapping or in a list of mappings. Without them, the success of all calls is
    computed from the calls, else from the observations of tools in its timeline.

    Args:
        calls: the calls that were recorded with the answer.
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
    """Yield for each observation of a tool whether it tells of no error."""
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


@dataclass(frozen=True, slots=True)
class Moments:
    """Count, mean and sum of squares of values.

    Attributes:
        mean: their mean, 0 without values.
    """

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, values: Collection[float]) -> Moments:
        """Compute the moments of values. Sums are exact, so the order does not matter."""
        if not values:
            return cls()
        mean = math.fsum(values) / len(values)
        return cls(len(values), mean, math.fsum((value - mean) ** 2 for value in values))

    def __add__(self, other: Moments) -> Moments:
        """Combine two groups (Chan, Golub and LeVeque 1979)."""
        if not self.count or not other.count:
            return self if self.count else other
        count, apart = self.count + other.count, other.mean - self.mean
        return Moments(
            count=count,
            mean=self.mean + apart * other.count / count,
            squares=self.squares + other.squares + apart * apart * self.count * other.count / count,
        )

    @property
    def average(self) -> float | None:
        """The mean; ``None`` without values."""
        return self.mean if self.count else None

    @property
    def variance(self) -> float | None:
        """The sample variance, divided by count − 1; ``None`` for fewer than two values."""
        return self.squares / (self.count - 1) if self.count > 1 else None

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation; ``None`` for fewer than two values."""
        return None if self.variance is None else math.sqrt(self.variance)


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lies.

    Values in between are interpolated linearly (Hyndman and Fan 1996, definition 7).

    Args:
        share: the share, 0..1.
    """
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


@dataclass(frozen=True, slots=True)
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


_FEWEST_VALUES = 4
_REACH = 1.5


@dataclass(frozen=True, slots=True)
class Fences:
    """The range of usual values: Q1 − 1.5·IQR to Q3 + 1.5·IQR (Tukey 1977)."""

    lower: float
    upper: float

    def excess(self, value: float) -> float:
        """Return the distance of a value outside the fences; 0 inside."""
        return max(self.lower - value, value - self.upper, 0.0)


@dataclass(frozen=True, slots=True)
class Outlier:
    """One unusual value and its answer."""

    answer: EvaluatedAnswer
    value: float


@dataclass(frozen=True, slots=True)
class OutlierReport:
    """The outliers of one measure.

    Attributes:
        fences: ``None`` with fewer than four values or equal quartiles: then there are no outliers.
    """

    fences: Fences | None
    outliers: tuple[Outlier, ...]
    everything: Moments
    usual: Moments


@dataclass(frozen=True, slots=True)
class Outliers:
    """Unusual times in ms, and unusual final scores."""

    durations: OutlierReport
    scores: OutlierReport


@dataclass(frozen=True, slots=True)
class Averaged:
    """The answers that averages count; counts, rates and extremes always use all answers."""

    scored: Sequence[EvaluatedAnswer]
    timed: Sequence[EvaluatedAnswer]


def fences(values: Sequence[float]) -> Fences | None:
    """Return the fences of the values, from quartiles by the exclusive method; ``None`` if undefined."""
    if len(values) < _FEWEST_VALUES:
        return None
    lower, _, upper = statistics.quantiles(values, n=4)
    reach = _REACH * (upper - lower)
    return Fences(lower - reach, upper + reach) if reach > 0 else None


def find_outliers(answers: Sequence[EvaluatedAnswer]) -> Outliers:
    """Return the unusual times and final scores among all answers that have them."""
    return Outliers(_unusual(answers, _duration), _unusual(answers, _score))


def averaged(answers: Sequence[EvaluatedAnswer], outliers: Outliers | None, analyses: Analyses) -> Averaged:
    """Return the answers that averages count; with ``remove``, without outliers."""
    if outliers is None or analyses.outlier_handling != "remove":
        return Averaged(answers, answers)
    return Averaged(
        scored=_inside(answers, outliers.scores.fences, _score),
        timed=_inside(answers, outliers.durations.fences, _duration),
    )


def _duration(answer: EvaluatedAnswer) -> float | None:
    return answer.duration_ms


def _score(answer: EvaluatedAnswer) -> float | None:
    return answer.final_score


def _unusual(answers: Sequence[EvaluatedAnswer], measure: Callable[[EvaluatedAnswer], float | None]) -> OutlierReport:
    values = [(answer, value) for answer in answers if (value := measure(answer)) is not None]
    everything = Moments.of([value for _, value in values])
    limits = fences([value for _, value in values])
    if limits is None:
        return OutlierReport(None, (), everything, everything)
    found = [Outlier(answer, value) for answer, value in values if limits.excess(value) > 0]
    found.sort(key=lambda outlier: (-limits.excess(outlier.value), outlier.answer.order, outlier.answer.name))
    usual = Moments.of([value for _, value in values if limits.excess(value) == 0])
    return OutlierReport(limits, tuple(found), everything, usual)


def _inside(
    answers: Sequence[EvaluatedAnswer], limits: Fences | None, measure: Callable[[EvaluatedAnswer], float | None]
) -> Sequence[EvaluatedAnswer]:
    if limits is None:
        return answers
    return [answer for answer in answers if (value := measure(answer)) is None or limits.excess(value) == 0]
