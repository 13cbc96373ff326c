"""The input of the gate's statistics: the scores of one metric in both runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

# Iteration scores of one case in one run; empty without scores
Scores = tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class CaseRuns:
    """The scores of one case for one metric, 0..1, higher is better; lost iterations are omitted.

    Args:
        case_id: id of the case.
        current: the pull request's first run.
        baseline: one entry for each baseline run, oldest first; empty if the run does not contain the case.
        second: the pull request's second run of the whole suite.
        control: the run of the base commit's agent beside ``second``.
        reruns: the pull request's re-runs of this case.
        control_reruns: the re-runs of the base commit's agent beside ``reruns``.
        cluster: cases with the same cluster vary together; a case with ``None`` is independent.
        threshold: the score from which an iteration passes; ``None`` without pass or fail.
        deterministic: whether the answers are recorded or no model is involved, so that one flip is proof.
        quarantined: whether the case is excluded from every comparison; it is still shown.
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
    """Iterations and cases lost to errors (rate limits, network, judge crashes), not to failures of the agent.

    Args:
        current: lost iterations of the pull request's run.
        current_iterations: all iterations of that run, including lost ones.
        lost_cases: cases that lost all iterations.
        cases: all cases.
        baseline: lost iterations of the baseline runs.
        baseline_iterations: all iterations of the baseline runs; 0 if errors were not counted.

    Raises:
        ValueError: a count is negative, or more iterations are lost than exist.
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
    """The scores of one metric for all its cases.

    Args:
        metric: id of the metric.
        cases: its cases in any order.
        seed: seed of the random labelings, see `permutation.seed_of`.
        step: smallest possible difference between two scores; 1 for pass or fail, 0.1 for most judges.
        gating: whether the metric can fail the gate; otherwise it is only reported, from one run.
        errors: iterations lost to errors, if counted.

    Raises:
        ValueError: a score is outside 0..1, two cases have the same id, cases have different numbers of baseline
            runs, or the step is outside (0, 1].
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
        """Return the metric with only the newest baseline runs."""
        if all(len(case.baseline) <= runs for case in self.cases):
            return self
        return replace(self, cases=tuple(replace(case, baseline=case.baseline[-runs:]) for case in self.cases))

    @property
    def compared(self) -> tuple[CaseRuns, ...]:
        """The cases to compare, sorted by id: not quarantined, with scores in both runs."""
        chosen = (c for c in self.cases if c.current and any(c.baseline) and not c.quarantined)
        return tuple(sorted(chosen, key=lambda case: case.case_id))


def _are_scores(scores: Iterable[float]) -> bool:
    # NaN is invalid too.
    return all(0 <= score <= 1 for score in scores)
