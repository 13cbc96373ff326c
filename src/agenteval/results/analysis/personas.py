"""Figures per persona."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agenteval.results.analysis.answers import EvaluatedAnswer
from agenteval.results.analysis.moments import Moments
from agenteval.results.analysis.outliers import Averaged
from agenteval.results.analysis.summary import (
    Counted,
    durations_of,
    judged,
    most_frequent,
    passed,
    reasons,
    scores_of,
)
from agenteval.suite.evaluation import Aggregate

#: The persona of an answer without persona.
NO_PERSONA = "default"
_TOP_REASONS = 3


@dataclass(frozen=True, slots=True)
class PersonaStats:
    """The answers to one persona; averages omit outliers if the suite removes them.

    Attributes:
        metrics: metric id → mean score.
        top_reasons: the most frequent reasons for lost points.
    """

    count: int
    judged: int
    passed: int
    successful: int
    scores: Moments
    durations: Moments
    metrics: Mapping[str, float]
    top_reasons: Counted

    @property
    def pass_rate(self) -> float | None:
        """Passed of judged, 0..1."""
        return self.passed / self.judged if self.judged else None


def persona_of(answer: EvaluatedAnswer) -> str:
    """Return the persona of an answer; ``default`` if it has none."""
    return answer.persona or NO_PERSONA


def by_persona(
    answers: Iterable[EvaluatedAnswer], averages: Averaged, aggregate: Aggregate
) -> dict[str, PersonaStats]:
    """Return persona → figures, sorted by name.

    Args:
        answers: all answers.
        averages: the answers that averages count.
        aggregate: decides which scores lose points.
    """
    everyone, scored, timed = (_grouped(part) for part in (answers, averages.scored, averages.timed))
    return {
        name: _stats(everyone[name], scored.get(name, ()), timed.get(name, ()), aggregate)
        for name in sorted(everyone)
    }


def _grouped(answers: Iterable[EvaluatedAnswer]) -> dict[str, list[EvaluatedAnswer]]:
    groups: dict[str, list[EvaluatedAnswer]] = defaultdict(list)
    for answer in answers:
        groups[persona_of(answer)].append(answer)
    return groups


def _stats(
    answers: Sequence[EvaluatedAnswer],
    scored: Iterable[EvaluatedAnswer],
    timed: Iterable[EvaluatedAnswer],
    aggregate: Aggregate,
) -> PersonaStats:
    return PersonaStats(
        count=len(answers),
        judged=sum(map(judged, answers)),
        passed=sum(map(passed, answers)),
        successful=sum(answer.success for answer in answers),
        scores=scores_of(scored),
        durations=durations_of(timed),
        metrics=_metric_means(scored),
        top_reasons=most_frequent(reasons(answers, aggregate), _TOP_REASONS),
    )


def _metric_means(answers: Iterable[EvaluatedAnswer]) -> dict[str, float]:
    values: dict[str, list[float]] = defaultdict(list)
    for answer in answers:
        for name, score in answer.scores.items():
            values[name].append(score)
    return {name: Moments.of(values[name]).mean for name in sorted(values)}
