"""Totals and averages of a run."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agenteval.results.analysis.aggregate import passes
from agenteval.results.analysis.answers import EvaluatedAnswer
from agenteval.results.analysis.moments import Moments, quantile
from agenteval.results.analysis.outliers import Averaged
from agenteval.suite.evaluation import Aggregate

_TOP_REASONS = 10

Counted = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts over all answers, and their average score.

    Attributes:
        answers: all of them.
        judged: those that passed or not; where nothing could be scored, nothing is judged.
        passed: of the judged ones.
        successful: that had an answer and did not fail.
        scores: final scores, without outliers where these are removed.
    """

    answers: int
    judged: int
    passed: int
    successful: int
    scores: Moments

    @property
    def pass_rate(self) -> float | None:
        """Passed of judged, 0..1."""
        return self.passed / self.judged if self.judged else None

    @property
    def error_rate(self) -> float | None:
        """Answers without success of all, 0..1."""
        return (self.answers - self.successful) / self.answers if self.answers else None


@dataclass(frozen=True, slots=True)
class Times:
    """Times for an answer in ms.

    Attributes:
        averaged: what the average is made of, without outliers where these are removed.
        ordered: all times, ascending.
    """

    averaged: Moments
    ordered: Sequence[float] = field(repr=False)

    @property
    def maximum(self) -> float | None:
        """The longest of all."""
        return self.ordered[-1] if self.ordered else None

    def quantile(self, share: float) -> float | None:
        """The time that the share of all answers did not exceed."""
        return quantile(self.ordered, share) if self.ordered else None


@dataclass(frozen=True, slots=True)
class MetricStats:
    """One metric over the run.

    Attributes:
        scores: without answers that are removed as outliers.
        minimum: of these scores; ``None`` where there are none, as is
        maximum: of them.
        reached: how many of them reach the threshold of the aggregate.
        absent: answers that this metric has no score for, and
        absent_reason: what is said most often why.
    """

    scores: Moments
    minimum: float | None
    maximum: float | None
    reached: int
    absent: int
    absent_reason: str | None


@dataclass(frozen=True, slots=True)
class Summary:
    """A run in numbers.

    Attributes:
        metrics: in the order of the aggregate's weights, then by name.
        top_reasons: the most frequent reasons why a score is not 1.
        absent_reasons: the most frequent reasons why there is none.
        tool_checks: check → its shares over all answers.
        tokens: per answer.
    """

    totals: Totals
    times: Times
    metrics: Mapping[str, MetricStats]
    top_reasons: Counted
    absent_reasons: Counted
    tool_checks: Mapping[str, Moments]
    tokens: Moments


def summarise(answers: Sequence[EvaluatedAnswer], averages: Averaged, aggregate: Aggregate) -> Summary:
    """Counts and averages everything.

    Args:
        answers: all of them.
        averages: those that averages are made of.
        aggregate: its threshold, and the order of its weights.
    """
    return Summary(
        totals=_totals(answers, averages.scored),
        times=Times(durations_of(averages.timed), sorted(_present(answer.duration_ms for answer in answers))),
        metrics=_metrics(answers, averages.scored, aggregate),
        top_reasons=most_frequent(reasons(answers), _TOP_REASONS),
        absent_reasons=most_frequent(
            Counter(why for answer in answers for why in answer.absent.values()), _TOP_REASONS
        ),
        tool_checks=_tool_checks(answers),
        tokens=Moments.of(_present(answer.tokens for answer in answers)),
    )


def judged(answer: EvaluatedAnswer) -> bool:
    """Whether the answer passed or not; one that nothing could be scored of says nothing."""
    return answer.passed is not None


def passed(answer: EvaluatedAnswer) -> bool:
    """Whether the answer is good enough."""
    return bool(answer.passed)


def _present(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def scores_of(answers: Iterable[EvaluatedAnswer]) -> Moments:
    """Final scores, as far as there are any."""
    return Moments.of(_present(answer.final_score for answer in answers))


def durations_of(answers: Iterable[EvaluatedAnswer]) -> Moments:
    """Times in ms, as far as they are known."""
    return Moments.of(_present(answer.duration_ms for answer in answers))


def _totals(answers: Sequence[EvaluatedAnswer], scored: Iterable[EvaluatedAnswer]) -> Totals:
    return Totals(
        answers=len(answers),
        judged=sum(map(judged, answers)),
        passed=sum(map(passed, answers)),
        successful=sum(answer.success for answer in answers),
        scores=scores_of(scored),
    )


def _metrics(
    answers: Iterable[EvaluatedAnswer], scored: Iterable[EvaluatedAnswer], aggregate: Aggregate
) -> dict[str, MetricStats]:
    values: dict[str, list[float]] = defaultdict(list)
    for answer in scored:
        for name, score in answer.scores.items():
            values[name].append(score)
    absent: dict[str, Counter[str]] = defaultdict(Counter)
    for answer in answers:
        for name, why in answer.absent.items():
            absent[name][why] += 1
    known = {name: place for place, name in enumerate(aggregate.weights)}
    names = sorted({*values, *absent, *known}, key=lambda name: (known.get(name, len(known)), name))
    return {name: _metric(values.get(name, []), absent.get(name, Counter()), aggregate.threshold) for name in names}


def _metric(scores: Sequence[float], absent: Counter[str], threshold: float) -> MetricStats:
    return MetricStats(
        scores=Moments.of(scores),
        minimum=min(scores, default=None),
        maximum=max(scores, default=None),
        reached=sum(bool(passes(score, threshold)) for score in scores),
        absent=absent.total(),
        absent_reason=next((why for why, _ in most_frequent(absent, 1)), None),
    )


def _tool_checks(answers: Iterable[EvaluatedAnswer]) -> dict[str, Moments]:
    shares: dict[str, list[float]] = defaultdict(list)
    for answer in answers:
        for name, found in answer.tool_checks.items():
            shares[name].extend(found)
    return {name: Moments.of(shares[name]) for name in sorted(shares)}


def reasons(answers: Iterable[EvaluatedAnswer]) -> Counter[str]:
    """How often each reason is given."""
    return Counter(reason for answer in answers for reason in answer.reasons.values())


def most_frequent(counted: Counter[str], most: int) -> Counted:
    """The most frequent; equally frequent ones by name, so that the order of answers does not matter."""
    return tuple(heapq.nsmallest(most, counted.items(), key=lambda item: (-item[1], item[0])))
