"""Counts the scores that each metric lost to errors, such as agent crashes and unreachable judges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from agenteval.compare.pairing import is_whole
from agenteval.compare.statistics.model import ErrorCounts
from agenteval.results.case import CaseResult, IterationResult, ScoreStatus, SuiteResult
from agenteval.suite.model import OVERALL


@dataclass
class Losses:
    """Iterations that one metric lost in a run, and cases that lost all their iterations.

    ``by_agent`` counts the lost iterations in which the agent failed; in the others, the metric failed.
    """

    iterations: int = 0
    by_agent: int = 0
    of_iterations: int = 0
    cases: int = 0
    of_cases: int = 0

    def add(self, lost: int, by_agent: int, total: int) -> None:
        """Add the iterations of one case."""
        self.iterations += lost
        self.by_agent += by_agent
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

    A metric lost an iteration if the iteration failed before scoring, or if the metric itself failed. Skipped metrics
    and iterations that a limit of the run ended are not losses.

    Args:
        cases: the cases of the run.
        expected: case id → metrics that the case should have, for cases that failed before scoring.
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
            by_agent = sum(
                outcome == "error" and not is_whole(iteration)
                for outcome, iteration in zip(outcomes, case.iterations, strict=True)
            )
            if asked:
                found.setdefault(name, Losses()).add(asked.count("error"), by_agent, len(asked))
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
    is_limited = any(turn.not_asked for turn in iteration.turns)
    return "error" if iteration.status == "error" and not is_limited else "skipped"
