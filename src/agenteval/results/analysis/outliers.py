"""Finds outliers among latencies and scores, and removes them from averages if asked."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agenteval.results.analysis.answers import EvaluatedAnswer
from agenteval.results.analysis.moments import Moments
from agenteval.suite.evaluation import Analyses

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
        outliers: the farthest outside first.
        everything: moments of all values.
        usual: moments of the values inside the fences.
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
    """The answers that averages count; counts, rates and extremes always use all answers.

    Attributes:
        scored: for averages of scores.
        timed: for averages of times.
    """

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
