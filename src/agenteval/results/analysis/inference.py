"""Confidence intervals of a run, and tests between personas and against a baseline."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist

from agenteval.core.statistics import fisher_p, holm, student_t_cdf, student_t_quantile
from agenteval.results.analysis.aggregate import ROUNDING
from agenteval.results.analysis.moments import Moments
from agenteval.results.analysis.personas import PersonaStats
from agenteval.results.analysis.summary import Summary
from agenteval.results.analysis.summary_baseline import Baseline

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
        metrics: metric id → t interval of its mean.
    """

    confidence: float
    significance: float
    pass_rate: Interval | None
    score: Interval | None
    metrics: Mapping[str, Interval | None]
    tests: tuple[Hypothesis, ...]


def infer(
    summary: Summary,
    personas: Mapping[str, PersonaStats],
    baseline: Baseline | None,
    *,
    confidence: float,
    significance: float,
) -> Statistics:
    """Compute every interval and every test.

    Args:
        summary: the summary of this run.
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


def _against_baseline(summary: Summary, baseline: Baseline) -> Iterator[Hypothesis]:
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
