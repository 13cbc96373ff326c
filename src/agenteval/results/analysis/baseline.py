"""Compares a run with an earlier summary.json: differences, confidence intervals and tests."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

from agenteval.core.files import read_regular
from agenteval.core.statistics import fisher_p, holm, student_t_cdf, student_t_quantile
from agenteval.core.text import display_path
from agenteval.results.analysis.answers import Moments
from agenteval.results.analysis.summary import AnalysisSummary, PersonaStats
from agenteval.results.importers.base import finite
from agenteval.results.rollup import ROUNDING
from agenteval.suite.evaluation import Aggregate

_LARGEST_FILE = 100 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class EarlierMetric:
    """A metric of an earlier run; ``moments`` is set if the summary has enough figures for tests."""

    average: float
    moments: Moments | None


@dataclass(frozen=True, slots=True)
class Baseline:
    """The figures of an earlier summary.

    Attributes:
        scores: moments of the final scores, if the summary has enough figures for tests.
    """

    path: str
    pass_rate: float | None
    average_score: float | None
    total: int | None
    passed: int | None
    judged: int | None
    threshold: float | None
    scores: Moments | None
    metrics: Mapping[str, EarlierMetric]


@dataclass(frozen=True, slots=True)
class Delta:
    """A figure of this run and of the baseline."""

    current: float
    baseline: float

    @property
    def change(self) -> float:
        """Difference: this run minus the baseline."""
        return self.current - self.baseline


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """What changed.

    Attributes:
        message: why nothing could be compared, or what limits the comparison.
        totals: ``pass_rate``, ``average_score``, ``total_traces``, ``passed_traces``, if both runs have them.
        baseline: ``None`` if it could not be read.
    """

    message: str | None
    totals: Mapping[str, Delta]
    metrics: Mapping[str, Delta]
    baseline: Baseline | None


def read_baseline(path: Path) -> Baseline | str:
    """Read a summary.json.

    Returns:
        The baseline, or a message that explains why the file cannot be used.
    """
    shown = display_path(path)
    try:
        content = json.loads(read_regular(path, limit=_LARGEST_FILE).decode("utf-8-sig"))
    except FileNotFoundError:
        return f"there is no baseline at {shown}"
    except OSError as error:
        return f"the baseline {shown} cannot be read: {error.strerror}"
    except (ValueError, RecursionError):
        return f"the baseline {shown} is not valid JSON"
    baseline = _baseline(content, shown) if isinstance(content, dict) else None
    if baseline is None:
        return (
            f"the baseline {shown} is not a summary: it has neither pass_rate nor average_score nor evaluator_stats"
        )
    return baseline


def compare_with(baseline: Baseline | str, summary: AnalysisSummary, aggregate: Aggregate) -> BaselineComparison:
    """Compare a run with its baseline; without a usable baseline, only the message is set."""
    if isinstance(baseline, str):
        return BaselineComparison(baseline, {}, {}, None)
    totals = summary.totals
    pairs = {
        "pass_rate": (totals.pass_rate, baseline.pass_rate),
        "average_score": (totals.scores.average, baseline.average_score),
        "total_traces": (totals.answers, baseline.total),
        "passed_traces": (totals.passed, baseline.passed),
    }
    averages = {
        name: (stats.scores.average, before.average)
        for name, stats in summary.metrics.items()
        if (before := baseline.metrics.get(name))
    }
    return BaselineComparison(_caveat(baseline, aggregate), _deltas(pairs), _deltas(averages), baseline)


def _caveat(baseline: Baseline, aggregate: Aggregate) -> str | None:
    before = baseline.threshold
    if before is None or math.isclose(before, aggregate.threshold):
        return None
    return (
        f"the threshold was {before:g} in the baseline and is {aggregate.threshold:g} now: pass rates differ by that"
    )


def _deltas(pairs: Mapping[str, tuple[float | None, float | None]]) -> dict[str, Delta]:
    return {
        name: Delta(current, before)
        for name, (current, before) in pairs.items()
        if current is not None and before is not None
    }


def _baseline(content: Mapping[str, Any], shown: str) -> Baseline | None:
    metrics = {
        name: found for name, stats in _mapping(content, "evaluator_stats").items() if (found := _metric(stats))
    }
    pass_rate, average = _number(content, "pass_rate"), _number(content, "average_score")
    if pass_rate is None and average is None and not metrics:
        return None
    total = _count(content, "total_traces")
    judged = _count(content, "judged_traces")
    return Baseline(
        path=shown,
        pass_rate=pass_rate,
        average_score=average,
        total=total,
        passed=_count(content, "passed_traces"),
        judged=total if judged is None else judged,
        threshold=_number(content, "threshold"),
        scores=_moments(_mapping(content, "score_stats")),
        metrics=metrics,
    )


def _metric(stats: object) -> EarlierMetric | None:
    if not isinstance(stats, dict):
        return None
    average = _number(stats, "average")
    return None if average is None else EarlierMetric(average, _moments(stats))


def _moments(stats: Mapping[str, Any]) -> Moments | None:
    """Compute moments from average, deviation and count. FluxLoop writes no deviation."""
    average, deviation, count = _number(stats, "average"), _number(stats, "deviation"), _count(stats, "count")
    if average is None or deviation is None or not count:
        return None
    return Moments(count, average, deviation * deviation * (count - 1))


def _mapping(content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = content.get(key)
    return value if isinstance(value, dict) else {}


def _number(content: Mapping[str, Any], key: str) -> float | None:
    return finite(content.get(key))


def _count(content: Mapping[str, Any], key: str) -> int | None:
    number = _number(content, key)
    return int(number) if number is not None and number >= 0 and number == int(number) else None


_NORMAL = NormalDist()
# Above this size the exact test takes seconds, and the normal approximation is as precise.
_MOST_EXACT = 20_000

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A difference and its significance.

    Attributes:
        subject: a persona, or ``this run``.
        against: another persona, the other personas, or the baseline.
        measure: ``pass_rate``, ``final_score`` or a metric id.
        difference: the subject's value minus the other value, in 0..1.
        p: two-sided p-value of this test alone.
        significant: whether the difference is significant after Holm's correction for all tests of the run.
    """

    subject: str
    against: str
    measure: str
    difference: float
    p: float
    significant: bool


@dataclass(frozen=True, slots=True)
class Statistics:
    """Intervals at ``confidence`` and tests at ``significance``; answers count as independent of each other.

    Attributes:
        pass_rate: Wilson's interval; ``None`` without judged answers.
        score: t interval of the mean final score; ``None`` with fewer than two scores, or if all are equal.
    """

    confidence: float
    significance: float
    pass_rate: Interval | None
    score: Interval | None
    metrics: Mapping[str, Interval | None]
    tests: tuple[Hypothesis, ...]


def infer(
    summary: AnalysisSummary,
    personas: Mapping[str, PersonaStats],
    baseline: Baseline | None,
    *,
    confidence: float,
    significance: float,
) -> Statistics:
    """Compute every interval and every test.

    Args:
        personas: the personas to test, each against all others; a single persona is not tested.
        baseline: the run to compare with; figures that its summary lacks are not tested.
        confidence: level of the intervals, inside (0, 1).
        significance: error rate of all tests together.
    """
    totals = summary.totals
    tests = [*_between_personas(personas), *(_against_baseline(summary, baseline) if baseline else ())]
    rejected = holm([test.p for test in tests], significance, len(tests))
    return Statistics(
        confidence=confidence,
        significance=significance,
        pass_rate=wilson(totals.passed, totals.judged, confidence),
        score=t_interval(totals.scores, confidence),
        metrics={name: t_interval(stats.scores, confidence) for name, stats in summary.metrics.items()},
        tests=tuple(replace(test, significant=stands) for test, stands in zip(tests, rejected, strict=True)),
    )


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
        return _two_proportions(successes, trials, other_successes, other_trials)
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


def _two_proportions(successes: int, trials: int, other_successes: int, other_trials: int) -> float:
    pooled = (successes + other_successes) / (trials + other_trials)
    error = math.sqrt(pooled * (1 - pooled) * (1 / trials + 1 / other_trials))
    if error == 0:
        return 1.0
    return 2 * _NORMAL.cdf(-abs(successes / trials - other_successes / other_trials) / error)


@dataclass(frozen=True, slots=True)
class _Group:
    name: str
    passed: int
    judged: int
    scores: Moments

    def __add__(self, other: _Group) -> _Group:
        return _Group("", self.passed + other.passed, self.judged + other.judged, self.scores + other.scores)


_NOBODY = _Group("", 0, 0, Moments())


def _between_personas(personas: Mapping[str, PersonaStats]) -> Iterator[Hypothesis]:
    groups = [_Group(name, stats.passed, stats.judged, stats.scores) for name, stats in personas.items()]
    if len(groups) < 2:
        return
    # Sums from both ends give the sum of all others without a subtraction, which would lose digits.
    before = list(itertools.accumulate(groups[:-1], initial=_NOBODY))
    after = list(itertools.accumulate(reversed(groups[1:]), initial=_NOBODY))[::-1]
    pairs = [(group, earlier + later) for group, earlier, later in zip(groups, before, after, strict=True)]
    if len(pairs) == 2:
        # A against B is the same test as B against A; a second test would only reduce the power.
        yield from _tests(groups[0], groups[1], groups[1].name)
        return
    for group, others in pairs:
        yield from _tests(group, others, "the other personas")


def _against_baseline(summary: AnalysisSummary, baseline: Baseline) -> Iterator[Hypothesis]:
    totals = summary.totals
    now = _Group("this run", totals.passed, totals.judged, totals.scores)
    yield from _tests(now, _earlier(baseline), "the baseline")
    for name, stats in summary.metrics.items():
        earlier = baseline.metrics.get(name)
        if earlier and earlier.moments:
            yield from _test_means("this run", stats.scores, earlier.moments, name, "the baseline")


def _earlier(baseline: Baseline) -> _Group:
    passed, judged = baseline.passed, baseline.judged
    plausible = passed is not None and judged is not None and passed <= judged
    return _Group(
        "", (passed or 0) if plausible else 0, (judged or 0) if plausible else 0, baseline.scores or Moments()
    )


def _tests(group: _Group, others: _Group, against: str) -> Iterator[Hypothesis]:
    if group.judged and others.judged:
        difference = group.passed / group.judged - others.passed / others.judged
        p = share_p(group.passed, group.judged, others.passed, others.judged)
        yield Hypothesis(group.name, against, "pass_rate", difference, p, significant=False)
    yield from _test_means(group.name, group.scores, others.scores, "final_score", against)


def _test_means(subject: str, values: Moments, others: Moments, measure: str, against: str) -> Iterator[Hypothesis]:
    p = welch_p(values, others)
    if p is not None:
        yield Hypothesis(subject, against, measure, values.mean - others.mean, p, significant=False)
