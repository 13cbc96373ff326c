"""Totals and averages of a run, its personas, and the reasons of its failures."""

from __future__ import annotations

import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agenteval.results.analysis.answers import Averaged, EvaluatedAnswer, Moments, quantile
from agenteval.results.rollup import passes
from agenteval.suite.evaluation import Aggregate

_TOP_REASONS = 10

Counted = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts over all answers, and their average score.

    Attributes:
        judged: answers that passed or failed; an answer without scores is not judged.
        scores: final scores, without outliers if the suite removes them.
    """

    answers: int
    judged: int
    passed: int
    successful: int
    scores: Moments

    @property
    def pass_rate(self) -> float | None:
        """Passed divided by judged, 0..1."""
        return self.passed / self.judged if self.judged else None

    @property
    def error_rate(self) -> float | None:
        """Share of unsuccessful answers, 0..1."""
        return (self.answers - self.successful) / self.answers if self.answers else None


@dataclass(frozen=True, slots=True)
class Times:
    """Latencies in ms.

    Attributes:
        averaged: the average, without outliers if the suite removes them.
        missing: number of successful answers without a latency.
    """

    averaged: Moments
    ordered: Sequence[float] = field(repr=False)
    missing: int

    @property
    def maximum(self) -> float | None:
        """The longest latency."""
        return self.ordered[-1] if self.ordered else None

    def quantile(self, share: float) -> float | None:
        """Return the latency that a share of the answers did not exceed."""
        return quantile(self.ordered, share) if self.ordered else None


@dataclass(frozen=True, slots=True)
class MetricStats:
    """One metric over the run.

    Attributes:
        minimum: lowest of these scores; ``None`` without scores.
        maximum: highest of these scores; ``None`` without scores.
    """

    scores: Moments
    minimum: float | None
    maximum: float | None
    reached: int
    absent: int
    absent_reason: str | None


@dataclass(frozen=True, slots=True)
class AnalysisSummary:
    """The figures of a run.

    Attributes:
        metrics: in the order of the aggregate's weights, then by name.
        top_reasons: the most frequent reasons for lost points; see ``EvaluatedAnswer.lost``.
        absent_reasons: the most frequent reasons why a score is absent.
        tool_checks: check → its shares over all answers.
    """

    totals: Totals
    times: Times
    metrics: Mapping[str, MetricStats]
    top_reasons: Counted
    absent_reasons: Counted
    tool_checks: Mapping[str, Moments]
    tokens: Moments


def summarise(answers: Sequence[EvaluatedAnswer], averages: Averaged, aggregate: Aggregate) -> AnalysisSummary:
    """Compute all counts and averages.

    Args:
        aggregate: its threshold, and the order of its weights.
    """
    return AnalysisSummary(
        totals=_totals(answers, averages.scored),
        times=Times(
            averaged=durations_of(averages.timed),
            ordered=sorted(_present(answer.duration_ms for answer in answers)),
            missing=sum(answer.success and answer.duration_ms is None for answer in answers),
        ),
        metrics=_metrics(answers, averages.scored, aggregate),
        top_reasons=most_frequent(reasons(answers, aggregate), _TOP_REASONS),
        absent_reasons=most_frequent(
            Counter(why for answer in answers for why in answer.absent.values()), _TOP_REASONS
        ),
        tool_checks=_tool_checks(answers),
        tokens=Moments.of(_present(answer.tokens for answer in answers)),
    )


def judged(answer: EvaluatedAnswer) -> bool:
    """Return whether the answer passed or failed; an answer without scores did neither."""
    return answer.passed is not None


def passed(answer: EvaluatedAnswer) -> bool:
    """Return whether the answer passed."""
    return bool(answer.passed)


def _present(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def scores_of(answers: Iterable[EvaluatedAnswer]) -> Moments:
    """Return the final scores; answers without one are omitted."""
    return Moments.of(_present(answer.final_score for answer in answers))


def durations_of(answers: Iterable[EvaluatedAnswer]) -> Moments:
    """Return the known latencies in ms."""
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


def reasons(answers: Iterable[EvaluatedAnswer], aggregate: Aggregate) -> Counter[str]:
    """Count each reason for lost points."""
    return Counter(reason for answer in answers for reason in answer.lost(aggregate).values())


def most_frequent(counted: Counter[str], most: int) -> Counted:
    """Return the most frequent reasons; ties are sorted by name, so that the order of answers does not matter."""
    return tuple(heapq.nsmallest(most, counted.items(), key=lambda item: (-item[1], item[0])))


#: The persona of an answer without persona.
NO_PERSONA = "default"
_TOP_REASONS_OF_PERSONA = 3


@dataclass(frozen=True, slots=True)
class PersonaStats:
    """The answers to one persona; averages omit outliers if the suite removes them.

    Attributes:
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
        top_reasons=most_frequent(reasons(answers, aggregate), _TOP_REASONS_OF_PERSONA),
    )


def _metric_means(answers: Iterable[EvaluatedAnswer]) -> dict[str, float]:
    values: dict[str, list[float]] = defaultdict(list)
    for answer in answers:
        for name, score in answer.scores.items():
            values[name].append(score)
    return {name: Moments.of(values[name]).mean for name in sorted(values)}


#: A reason belongs to the first category whose words its metric id, else its text contains.
CATEGORIES: Sequence[tuple[str, str]] = (
    ("content", r"keywords?|forbidden|similarity|pattern|regex|contains(?=:)"),
    ("latency", r"latency|time-?outs?|timed out|too slow|response time|duration|\d+ ?ms"),
    ("token_usage", r"tokens?"),
    ("tool_calls", r"tools?|function calls?"),
    ("intent_recognition", r"intents?|intentions?|misunderstood|misunderstands"),
    ("runtime_error", r"errors?|exceptions?|traceback|crash(?:ed|es)?|no answer|success(?=:)"),
    ("empty_output", r"empty|blank"),
)
#: The category of missing answers and of traces that report a failure.
NO_SUCCESS = "runtime_error"
#: The category of all other failures.
GENERAL = "general"

_LONGEST_READ = 400
_EXAMPLES = 3
_RULES = [(name, re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)) for name, pattern in CATEGORIES]


@dataclass(frozen=True, slots=True)
class FailureCategory:
    """One category.

    Attributes:
        count: answers that failed for such a reason; an answer may have several reasons.
    """

    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SortedFailures:
    """The answers that did not pass.

    Attributes:
        causes: category → cause, the most frequent first; ``None`` if not asked for.
    """

    count: int
    causes: Mapping[str, FailureCategory] | None


def failed(answer: EvaluatedAnswer) -> bool:
    """Return whether the answer was judged and did not pass."""
    return judged(answer) and not passed(answer)


def category(metric: str, reason: str) -> str:
    """Return the category of a reason."""
    for text in (metric.replace("_", " "), reason[:_LONGEST_READ].replace("_", " ")):
        for name, rule in _RULES:
            if rule.search(text):
                return name
    return GENERAL


def count_failures(answers: Iterable[EvaluatedAnswer]) -> SortedFailures:
    """Count failed answers without their causes."""
    return SortedFailures(sum(map(failed, answers)), None)


def find_causes(answers: Iterable[EvaluatedAnswer], aggregate: Aggregate) -> SortedFailures:
    """Count failed answers and their causes, which are the reasons for lost points."""
    found: dict[str, list[EvaluatedAnswer]] = defaultdict(list)
    count = 0
    known: dict[tuple[str, str], str] = {}
    for answer in filter(failed, answers):
        count += 1
        for name in _categories(answer, aggregate, known):
            found[name].append(answer)
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return SortedFailures(count, {name: FailureCategory(len(cases), _examples(cases)) for name, cases in ordered})


def _categories(answer: EvaluatedAnswer, aggregate: Aggregate, known: dict[tuple[str, str], str]) -> set[str]:
    found = set() if answer.success else {NO_SUCCESS}
    for item in answer.lost(aggregate).items():
        if item not in known:
            known[item] = category(*item)
        found.add(known[item])
    return found or {GENERAL}


def _examples(answers: Iterable[EvaluatedAnswer]) -> tuple[str, ...]:
    return tuple(heapq.nsmallest(_EXAMPLES, {answer.name for answer in answers}))
