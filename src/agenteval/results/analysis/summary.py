"""Figures of a run and of its personas, and unusual answers, trends and failures in the form of summary.json.

Below them are moments and quantiles of values, confidence intervals, and tests of differences.
"""

from __future__ import annotations

import functools
import heapq
import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import Any, Literal

from agenteval.core.records import dataclass
from agenteval.core.statistics import ROUNDING, fisher_p, student_t_cdf, student_t_quantile
from agenteval.results.analysis.answers import EvaluatedAnswer
from agenteval.results.rollup import passes
from agenteval.suite.evaluation import Aggregate

_NORMAL = NormalDist()
# Above this size the exact test takes seconds, and the normal approximation is as precise.
_MOST_EXACT = 20_000

Interval = tuple[float, float]


@dataclass(frozen=True)
class Moments:
    """Count, mean (0 without values) and sum of squares of values."""

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

    @classmethod
    def of_stats(cls, stats: Mapping[str, Any]) -> Moments:
        """Return the moments from figures of a summary; without a deviation, which FluxLoop does not write, none."""
        average, deviation, count = stats["average"], stats["deviation"], stats["count"]
        if average is None or not count or (deviation is None and count > 1):
            return cls()
        return cls(count, average, (deviation or 0.0) ** 2 * (count - 1))

    @property
    def stats(self) -> dict[str, Any]:
        """The figures of a summary."""
        return {"average": self.average, "deviation": self.deviation, "count": self.count}

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
    """Return the value below which a share of the values lies (Hyndman and Fan 1996, definition 7)."""
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def wilson(successes: int, trials: int, confidence: float) -> Interval | None:
    """Return the score interval of a share (Wilson 1927, without continuity correction); ``None`` without trials."""
    if not trials:
        return None
    z = _NORMAL.inv_cdf(0.5 + confidence / 2)
    share, weight = successes / trials, z * z / trials
    middle = (share + weight / 2) / (1 + weight)
    margin = z * math.sqrt(share * (1 - share) / trials + weight / (4 * trials)) / (1 + weight)
    return max(0.0, middle - margin), min(1.0, middle + margin)


def t_interval(values: Moments, confidence: float) -> Interval | None:
    """Return Student's interval of a mean of scores, clipped to 0..1; ``None`` without spread."""
    deviation = values.deviation
    if deviation is None or deviation < ROUNDING:
        return None
    margin = student_t_quantile(0.5 + confidence / 2, values.count - 1) * deviation / math.sqrt(values.count)
    return max(0.0, values.mean - margin), min(1.0, values.mean + margin)


def share_p(successes: int, trials: int, other_successes: int, other_trials: int) -> float:
    """Return the two-sided p-value that two shares differ: twice the smaller tail of Fisher's exact test.

    Above 20,000 trials it is the pooled z test of two proportions.
    """
    if trials + other_trials > _MOST_EXACT:
        pooled = (successes + other_successes) / (trials + other_trials)
        error = math.sqrt(pooled * (1 - pooled) * (1 / trials + 1 / other_trials))
        difference = abs(successes / trials - other_successes / other_trials)
        return 2 * _NORMAL.cdf(-difference / error) if error else 1.0
    more = fisher_p(other_successes, other_trials, successes, trials)
    less = fisher_p(other_trials - other_successes, other_trials, trials - successes, trials)
    return min(1.0, 2 * min(more, less))


def welch_p(values: Moments, others: Moments) -> float | None:
    """Return the two-sided p-value that two means differ (Welch 1947); ``None`` without spread."""
    if values.variance is None or others.variance is None:
        return None
    errors = values.variance / values.count, others.variance / others.count
    error = sum(errors)
    if math.sqrt(error) < ROUNDING:
        return None
    freedom = error * error / (errors[0] ** 2 / (values.count - 1) + errors[1] ** 2 / (others.count - 1))
    return 2 * student_t_cdf(-abs(values.mean - others.mean) / math.sqrt(error), freedom)


#: The persona of an answer without persona.
NO_PERSONA = "default"
_TOP_REASONS = 10

Measure = Literal["duration_ms", "final_score"]
MEASURES: tuple[Measure, ...] = ("duration_ms", "final_score")


def summarise(
    answers: Sequence[EvaluatedAnswer],
    scored: Sequence[EvaluatedAnswer],
    timed: Sequence[EvaluatedAnswer],
    aggregate: Aggregate,
) -> dict[str, Any]:
    """Return the figures of a run, or of the answers to one persona, in the form of summary.json.

    Averages of scores count the answers in ``scored``, averages of times those in ``timed``. Evaluators are in the
    order of the aggregate's weights, then by name.
    """
    judged = sum(answer.passed is not None for answer in answers)
    passed = sum(answer.passed is True for answer in answers)
    successful = sum(answer.success for answer in answers)
    scores = Moments.of(_present(answer.final_score for answer in scored))
    times = sorted(_present(answer.duration_ms for answer in answers))
    metrics = _metrics(answers, scored, aggregate)
    tools: dict[str, list[float]] = defaultdict(list)
    for answer in answers:
        for name, shares in answer.tool_checks.items():
            tools[name].extend(shares)
    return {
        "total_traces": len(answers),
        "judged_traces": judged,
        "passed_traces": passed,
        "successful_traces": successful,
        "pass_rate": passed / judged if judged else None,
        "error_rate": (len(answers) - successful) / len(answers) if answers else None,
        "average_score": scores.average,
        "score_stats": scores.stats,
        "threshold": aggregate.threshold,
        "aggregate_method": aggregate.method,
        "evaluators": list(metrics),
        "evaluator_stats": metrics,
        "duration_stats": {
            **Moments.of(_present(answer.duration_ms for answer in timed)).stats,
            **{f"p{part}": quantile(times, part / 100) if times else None for part in (50, 90, 95, 99)},
            "max": max(times, default=None),
            "timed_traces": len(times),
            # Answers that may have been slow.
            "untimed_traces": sum(answer.success and answer.duration_ms is None for answer in answers),
        },
        "token_stats": Moments.of(_present(answer.tokens for answer in answers)).stats,
        "tool_stats": {name: Moments.of(tools[name]).stats for name in sorted(tools)},
        "top_reasons": _most_frequent(reason for answer in answers for reason in answer.lost(aggregate).values()),
        "absent_reasons": _most_frequent(why for answer in answers for why in answer.absent.values()),
    }


def by_persona(
    answers: Sequence[EvaluatedAnswer],
    scored: Sequence[EvaluatedAnswer],
    timed: Sequence[EvaluatedAnswer],
    aggregate: Aggregate,
) -> dict[str, dict[str, Any]]:
    """Return persona → figures, sorted by name; the arguments are those of ``summarise``."""
    everyone, of_scores, of_times = (_grouped(part) for part in (answers, scored, timed))
    return {name: summarise(everyone[name], of_scores[name], of_times[name], aggregate) for name in sorted(everyone)}


def _grouped(answers: Iterable[EvaluatedAnswer]) -> Mapping[str, list[EvaluatedAnswer]]:
    groups: dict[str, list[EvaluatedAnswer]] = defaultdict(list)
    for answer in answers:
        groups[persona_of(answer)].append(answer)
    return groups


def persona_of(answer: EvaluatedAnswer) -> str:
    """Return the persona of an answer; ``default`` if it has none."""
    return answer.persona or NO_PERSONA


def _present(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _metrics(
    answers: Iterable[EvaluatedAnswer], scored: Iterable[EvaluatedAnswer], aggregate: Aggregate
) -> dict[str, dict[str, Any]]:
    values: dict[str, list[float]] = defaultdict(list)
    for answer in scored:
        for name, score in answer.scores.items():
            values[name].append(score)
    absent = Counter(name for answer in answers for name in answer.absent)
    known = {name: place for place, name in enumerate(aggregate.weights)}
    names = sorted({*values, *absent, *known}, key=lambda name: (known.get(name, len(known)), name))
    return {
        name: {
            "average": (moments := Moments.of(values[name])).average,
            "min": min(values[name], default=None),
            "max": max(values[name], default=None),
            "count": moments.count,
            "deviation": moments.deviation,
            "reached": sum(bool(passes(score, aggregate.threshold)) for score in values[name]),
            "absent": absent[name],
        }
        for name in names
    }


def _most_frequent(reasons: Iterable[str]) -> list[list[Any]]:
    """Return the most frequent reasons; ties are sorted by name, so that the order of answers does not matter."""
    counted = heapq.nsmallest(_TOP_REASONS, Counter(reasons).items(), key=lambda item: (-item[1], item[0]))
    return [[reason, times] for reason, times in counted]


_FEWEST_VALUES = 4
_REACH = 1.5
# Number of listed outliers; their total count is recorded beside them.
_MOST_OUTLIERS = 1_000


def fences(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the range of usual values: Q1 − 1.5·IQR to Q3 + 1.5·IQR (Tukey 1977), by the exclusive method.

    There is none for fewer than four values or equal quartiles: then no value is an outlier.
    """
    if len(values) < _FEWEST_VALUES:
        return None
    lower, _, upper = statistics.quantiles(values, n=4)
    reach = _REACH * (upper - lower)
    return (lower - reach, upper + reach) if reach > 0 else None


@dataclass(frozen=True)
class Outliers:
    """The unusual values of one measure for summary.json, the most unusual first, and the ``usual`` answers."""

    usual: Sequence[EvaluatedAnswer]
    listed: list[dict[str, Any]]
    effect: Mapping[str, Any]


def find_outliers(answers: Sequence[EvaluatedAnswer], measure: Measure) -> Outliers:
    """Return the outliers among the answers that have a value."""
    valued = [(answer, value) for answer in answers if (value := getattr(answer, measure)) is not None]
    low, high = fences([value for _, value in valued]) or (-float("inf"), float("inf"))
    found = [(max(low - value, value - high), answer, value) for answer, value in valued if not low <= value <= high]
    found.sort(key=lambda item: (-item[0], item[1].order, item[1].name))
    return Outliers(
        usual=[a for a in answers if (value := getattr(a, measure)) is None or low <= value <= high],
        listed=[
            {
                "trace_id": answer.trace_id or answer.name,
                "name": answer.name,
                "value": value,
                "thresholds": {"lower": low, "upper": high},
            }
            for _, answer, value in found[:_MOST_OUTLIERS]
        ],
        effect={
            "count": len(found),
            "above": sum(value > high for _, _, value in found),
            "average_with": Moments.of([value for _, value in valued]).average,
            "average_without": Moments.of([value for _, value in valued if low <= value <= high]).average,
        },
    )


_TOLERANCE = 0.01


def trend(answers: Iterable[EvaluatedAnswer], measure: Measure) -> dict[str, Any] | None:
    """Return the trend of the mean over the iterations: from the first to the last one; ``None`` without values.

    It is stable while the slope is within ±0.01 for each iteration; for times, within ±1 % of their mean.
    """
    groups: dict[int, list[float]] = defaultdict(list)
    for answer in answers:
        if (value := getattr(answer, measure)) is not None:
            groups[answer.order].append(value)
    if not groups:
        return None
    points = [[order, Moments.of(groups[order]).mean] for order in sorted(groups)]
    (first, start), (last, end) = points[0], points[-1]
    slope = (end - start) / (last - first) if last != first else 0.0
    scale = abs(Moments.of([mean for _, mean in points]).mean) if measure == "duration_ms" else 1
    direction = "stable" if abs(slope) <= _TOLERANCE * scale else "increasing" if slope > 0 else "decreasing"
    return {"trend": direction, "slope": slope, "points": points}


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


@functools.lru_cache(maxsize=10_000)
def category(metric: str, reason: str) -> str:
    """Return the category of a reason."""
    for text in (metric.replace("_", " "), reason[:_LONGEST_READ].replace("_", " ")):
        for name, rule in _RULES:
            if rule.search(text):
                return name
    return GENERAL


def find_failures(answers: Iterable[EvaluatedAnswer], aggregate: Aggregate, *, causes: bool) -> dict[str, Any]:
    """Count the answers that failed, and with ``causes`` the categories of their reasons, the most frequent first.

    The reasons are those for lost points. An answer counts once in each category of its reasons.
    """
    failed = [answer for answer in answers if answer.passed is False]
    if not causes:
        return {"count": len(failed)}
    found: dict[str, list[EvaluatedAnswer]] = defaultdict(list)
    for answer in failed:
        names = {category(*item) for item in answer.lost(aggregate).items()}
        names |= set() if answer.success else {NO_SUCCESS}
        for name in names or {GENERAL}:
            found[name].append(answer)
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return {
        "count": len(failed),
        "categorized": {name: len(cases) for name, cases in ordered},
        "examples": {name: heapq.nsmallest(_EXAMPLES, {case.name for case in cases}) for name, cases in ordered},
    }
