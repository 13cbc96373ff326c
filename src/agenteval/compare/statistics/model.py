"""What the regression gate is asked: its parameters, and the scores of one metric on both sides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Literal

Confirm = Literal["head", "base", "both", "off"]
CONFIRM: tuple[Confirm, ...] = ("head", "base", "both", "off")
# Iteration scores of one case in one run; empty where the run has none.
Scores = tuple[float, ...]

# Scores and sums of scores closer than this are the same.
ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class GateParameters:
    """All error rates, limits and switches of the gate. Rates, scores and differences are 0..1.

    Args:
        confirm: what backs a suspicion before it blocks. ``head``: the pull request's agent runs once more.
            ``base``: it runs again beside the agent of the base commit, and those two runs decide.
            ``both``: both comparisons must agree. ``off``: one run decides, at ``alpha_single``.
        window: newest baseline runs that count.
        screen: p of the first run, at or below which the suite is run once more.
        alpha_aggregate: error rate of the confirmed comparison of means, over all gating metrics.
        alpha_single: the same where one run decides; also for ``improved`` and in the detectable drop.
        alpha_case: error rate of the search for single broken cases, over all gating metrics.
        alpha_chart: p of the run chart, above which a drop is within what baseline runs do among themselves.
        chart_runs: baseline runs from which on the run chart is used.
        min_effect: smaller drops and gains of the mean are no change.
        tolerance: a metric is unchanged if a drop larger than this can be excluded.
        confidence: of the interval, two-sided.
        power: of the detectable drop.
        draws: random labelings where there are more than ``exact_limit``.
        exact_limit: up to so many labelings are enumerated.
        case_drop: fall of a case's pass rate that makes it a candidate.
        min_repeats: fewest re-runs of a candidate.
        max_repeats: most re-runs of a candidate.
        max_cases: most candidates to re-run, per metric.
        prior_correlation: of iterations within a run, where the baseline is too small to estimate it.
        min_units: with fewer independent units a mean is neither improved nor unchanged.
        max_error_share: share of iterations that may be lost to errors.
        max_lost_cases: share of cases that may have no iteration left; in a confirming run too.
        error_alpha: p below which more errors than in the baseline are no chance.

    Raises:
        ValueError: a value outside its range.
    """

    confirm: Confirm = "head"
    window: int = 10
    screen: float = 0.10
    alpha_aggregate: float = 0.02
    alpha_single: float = 0.04
    alpha_case: float = 0.01
    alpha_chart: float = 0.10
    chart_runs: int = 5
    min_effect: float = 0.01
    tolerance: float = 0.05
    confidence: float = 0.95
    power: float = 0.80
    draws: int = 9999
    exact_limit: int = 16384
    case_drop: float = 0.5
    min_repeats: int = 3
    max_repeats: int = 8
    max_cases: int = 20
    prior_correlation: float = 0.10
    min_units: int = 5
    max_error_share: float = 0.10
    max_lost_cases: float = 0.05
    error_alpha: float = 0.01

    def __post_init__(self) -> None:
        if self.confirm not in CONFIRM:
            raise ValueError(f"confirm is {self.confirm!r}; allowed are {', '.join(CONFIRM)}")
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if isinstance(value, float) and not 0 <= value <= 1:
                raise ValueError(f"{name} is {value:g}; it must be between 0 and 1")
            if isinstance(value, int) and value < 1:
                raise ValueError(f"{name} is {value}; it must be at least 1")
        for name in ("confidence", "power", "alpha_single", "alpha_aggregate", "prior_correlation"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must lie strictly between 0 and 1")
        if self.case_drop <= 0:
            raise ValueError("case_drop must be above 0")
        if self.chart_runs < 2:
            raise ValueError("chart_runs must be at least 2: one run has no spread")
        if self.min_repeats > self.max_repeats:
            raise ValueError(f"min_repeats ({self.min_repeats}) is above max_repeats ({self.max_repeats})")


@dataclass(frozen=True, kw_only=True)
class CaseRuns:
    """The scores of one case under one metric, 0..1, higher is better; lost iterations are left out.

    Args:
        case_id: id of the case.
        current: the pull request's first run.
        baseline: one entry per baseline run, oldest first, empty where the run lacks the case.
        second: the pull request's confirming run of the whole suite.
        control: the base commit's agent, run beside ``second``.
        reruns: the pull request's re-runs of this case alone.
        control_reruns: the base commit's agent, run beside ``reruns``.
        cluster: cases that share a cluster vary together; ``None`` is a case of its own.
        threshold: an iteration passes from here on; ``None`` where nothing passes or fails.
        deterministic: the answers are replayed or involve no model, so one flip is proof.
        quarantined: shown, but kept out of every comparison.
    """

    case_id: str
    current: Scores
    baseline: tuple[Scores, ...]
    second: Scores = ()
    control: Scores = ()
    reruns: Scores = ()
    control_reruns: Scores = ()
    cluster: str | None = None
    threshold: float | None = 0.5
    deterministic: bool = False
    quarantined: bool = False


@dataclass(frozen=True, kw_only=True)
class ErrorCounts:
    """Iterations and cases lost to errors: rate limits, network, judge crashes; not the agent's own failures.

    Args:
        current: lost iterations of the pull request's run.
        current_iterations: all its iterations, lost ones included.
        lost_cases: cases without an iteration left.
        cases: all cases.
        baseline: lost iterations of the baseline runs.
        baseline_iterations: all their iterations; 0 where errors were not counted.

    Raises:
        ValueError: a count is negative, or more is lost than there was.
    """

    current: int
    current_iterations: int
    lost_cases: int
    cases: int
    baseline: int = 0
    baseline_iterations: int = 0

    def __post_init__(self) -> None:
        for lost, total in (
            (self.current, self.current_iterations),
            (self.lost_cases, self.cases),
            (self.baseline, self.baseline_iterations),
        ):
            if not 0 <= lost <= total:
                raise ValueError(f"{lost} lost of {total}")


@dataclass(frozen=True, kw_only=True)
class MetricRuns:
    """One metric on all its cases.

    Args:
        metric: id of the metric.
        cases: its cases; the order does not matter.
        seed: of the random labelings, see `permutation.seed_of`.
        step: smallest possible difference between two scores; 1 for pass or fail, 0.1 for most judges.
        gating: whether it can block; otherwise it is only reported, from one run.
        errors: what was lost, if counted.

    Raises:
        ValueError: a score outside 0..1, two cases with one id, cases with different numbers of baseline
            runs, or a step outside (0, 1].
    """

    metric: str
    cases: tuple[CaseRuns, ...]
    seed: int
    step: float = 1.0
    gating: bool = True
    errors: ErrorCounts | None = None

    def __post_init__(self) -> None:
        if not 0 < self.step <= 1:
            raise ValueError(f"{self.metric}: step is {self.step:g}; it must be above 0 and at most 1")
        if self.seed < 0:
            raise ValueError(f"{self.metric}: seed is {self.seed}; it must not be negative")
        if len({case.case_id for case in self.cases}) != len(self.cases):
            raise ValueError(f"{self.metric}: two cases have the same id")
        if len({len(case.baseline) for case in self.cases}) > 1:
            raise ValueError(f"{self.metric}: cases have different numbers of baseline runs; give missing ones as ()")
        for case in self.cases:
            runs = (case.current, case.second, case.control, case.reruns, case.control_reruns, *case.baseline)
            if not _are_scores(score for run in runs for score in run):
                raise ValueError(f"{self.metric}: case {case.case_id} has a score outside 0..1")

    @property
    def binary(self) -> bool:
        """Whether scores are only 0 and 1."""
        return self.step == 1

    def newest(self, runs: int) -> MetricRuns:
        """The same with only the newest baseline runs."""
        if all(len(case.baseline) <= runs for case in self.cases):
            return self
        return replace(self, cases=tuple(replace(case, baseline=case.baseline[-runs:]) for case in self.cases))

    @property
    def compared(self) -> tuple[CaseRuns, ...]:
        """Cases to compare, sorted by id: scored on both sides, not in quarantine."""
        chosen = (c for c in self.cases if c.current and any(c.baseline) and not c.quarantined)
        return tuple(sorted(chosen, key=lambda case: case.case_id))


def _are_scores(scores: Iterable[float]) -> bool:
    # False for NaN as well.
    return all(0 <= score <= 1 for score in scores)
