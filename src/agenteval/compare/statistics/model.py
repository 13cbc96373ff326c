"""What the regression gate is asked: the scores of one metric on both sides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

# Iteration scores of one case in one run; empty where the run has none.
Scores = tuple[float, ...]


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
