"""Counts the scores that each metric lost to errors, such as agent crashes and unreachable judges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from agenteval.compare.pairing import is_whole
from agenteval.compare.statistics.model import ErrorCounts
from agenteval.results.model import CaseResult, IterationResult, ScoreStatus, SuiteResult
from agenteval.suite.model import OVERALL


@dataclass
class Losses:
    """Iterations that one metric lost in a run, and cases that lost all their iterations."""

    iterations: int = 0
    of_iterations: int = 0
    cases: int = 0
    of_cases: int = 0

    def add(self, lost: int, total: int) -> None:
        """Add the iterations of one case."""
        self.iterations += lost
        self.of_iterations += total
        self.cases += lost == total
        self.of_cases += 1


@dataclass(frozen=True)
class RunLosses:
    """The losses of all metrics of a run; a missing metric lost nothing."""

    by_metric: Mapping[str, Losses] = field(default_factory=dict)

    def beside(self, baseline: RunLosses, metric: str) -> ErrorCounts:
        """Return the losses of a metric in this run and in the baseline."""
        now, then = self.by_metric.get(metric, Losses()), baseline.by_metric.get(metric, Losses())
        return ErrorCounts(
            current=now.iterations,
            current_iterations=now.of_iterations,
            lost_cases=now.cases,
            cases=now.of_cases,
            baseline=then.iterations,
            baseline_iterations=then.of_iterations,
        )


def losses_of(cases: Iterable[tuple[SuiteResult, CaseResult]], expected: Mapping[str, Iterable[str]]) -> RunLosses:
    """Count the losses of a run.

    A metric was lost in an iteration that broke before it could be scored, or in which the metric itself broke.
    Skipped metrics are not losses.

    Args:
        cases: of the run.
        expected: case id → metrics that the case should have, for cases that failed before any metric ran.
    """
    found: dict[str, Losses] = {}
    for suite, case in cases:
        statuses = [_statuses(suite, iteration) for iteration in case.iterations]
        names = dict.fromkeys(name for by_metric in statuses for name in by_metric)
        for name in {**names, **dict.fromkeys(expected.get(case.id, ()))}:
            outcomes = [
                by_metric.get(name) or _unscored(iteration)
                for by_metric, iteration in zip(statuses, case.iterations, strict=True)
            ]
            asked = [outcome for outcome in outcomes if outcome != "skipped"]
            if asked:
                found.setdefault(name, Losses()).add(asked.count("error"), len(asked))
    return RunLosses(found)


def _statuses(suite: SuiteResult, iteration: IterationResult) -> dict[str, ScoreStatus]:
    """Return the status of each metric: scored if any turn was scored, else error if any turn failed."""
    found: dict[str, ScoreStatus] = {}
    if not is_whole(iteration):
        return found
    for turn in iteration.turns:
        for score in turn.scores:
            status: ScoreStatus = "scored" if score.score is not None else score.status
            if status == "scored" or found.get(score.id, "skipped") == "skipped":
                found[score.id] = status
    if suite.threshold is not None:
        found[OVERALL] = "scored" if iteration.score is not None else _unscored(iteration)
    return found


def _unscored(iteration: IterationResult) -> ScoreStatus:
    return "error" if iteration.status == "error" else "skipped"
