"""Computes the status of an iteration, a case and a run from scores."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from agenteval.results.model import CaseResult, CaseStatus, MetricSummary, RunUsage, Score, Summary, TurnResult


def total(numbers: Sequence[float]) -> float:
    """Return the sum, rounded once as `math.fsum` (Shewchuk 1997, "Adaptive precision floating-point arithmetic")."""
    try:
        return math.fsum(numbers)
    except (OverflowError, ValueError):
        # The sum or an intermediate sum is infinite.
        return sum(numbers)


# A weighted sum of thirds may fall below its threshold by rounding.
_ROUNDING = 1e-9


def iteration_status(turns: Sequence[TurnResult], fatal: Collection[tuple[int, str]] = ()) -> CaseStatus:
    """Return the status of an iteration of a case.

    ``error`` if a turn had no answer, a fatal metric has an error, or all metrics have; ``failed`` if a
    metric failed; ``skipped`` if nothing could be scored; else ``passed``.

    Args:
        turns: the turns in order.
        fatal: turn and id of metrics whose error makes the case an error.
    """
    if any(turn.error is not None for turn in turns):
        return "error"
    scores = [(turn.index, score) for turn in turns for score in turn.scores]
    broken = [(index, score) for index, score in scores if score.status == "error"]
    applied = [score for _, score in scores if score.status != "skipped"]
    if any((index, score.id) in fatal for index, score in broken):
        return "error"
    if not applied:
        return "skipped"
    if len(broken) == len(applied):
        return "error"
    return "failed" if any(score.passed is False for score in applied) else "passed"


def aggregated_status(turns: Sequence[TurnResult], final: float | None, threshold: float | None) -> CaseStatus:
    """Return the status of an iteration of a case whose scores are aggregated.

    Args:
        turns: the turns in order.
        final: the aggregated score; ``None`` without scores.
        threshold: the minimum score to pass.
    """
    if any(turn.error is not None for turn in turns):
        return "error"
    if final is None:
        broken = any(score.status == "error" for turn in turns for score in turn.scores)
        return "error" if broken else "skipped"
    return "passed" if threshold is None or final >= threshold - _ROUNDING else "failed"


def case_status(iterations: Sequence[CaseStatus]) -> CaseStatus:
    """Return the status of a case over its iterations.

    The majority of the iterations that passed or failed decides, and a tie counts against the agent.
    If more iterations are errors than passed or failed, the case is an error.
    """
    passed, failed, broken = (iterations.count(name) for name in ("passed", "failed", "error"))
    if broken > passed + failed:
        return "error"
    if passed or failed:
        return "passed" if passed > failed else "failed"
    return "skipped"


def strict_case_status(iterations: Sequence[CaseStatus]) -> CaseStatus:
    """Return ``failed`` if one iteration failed; else the result of ``case_status``."""
    return "failed" if "failed" in iterations else case_status(iterations)


def mean_score(turns: Iterable[TurnResult]) -> float | None:
    """Return the mean over all scores of an iteration; ``None`` without scores."""
    return mean([score.score for turn in turns for score in turn.scores])


def turn_means(turns: Iterable[TurnResult]) -> dict[str, float]:
    """Return for each metric the mean over the turns that it scored."""
    found: dict[str, list[float]] = {}
    for turn in turns:
        for score in turn.scores:
            if score.score is not None:
                found.setdefault(score.id, []).append(score.score)
    return {name: sum(values) / len(values) for name, values in found.items()}


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are not ``None``; ``None`` without any."""
    present = [value for value in values if value is not None]
    return sum(present) / len(present) if present else None


class Tally:
    """Counts finished cases in any order, so that the summary does not need them afterwards.

    Args:
        metered: ids of cases answered by model agents; the usage of their turns is part of the models' usage.
    """

    def __init__(self, metered: Collection[str] = ()) -> None:
        self._metered = metered
        self._statuses: Counter[CaseStatus] = Counter()
        self._scores = _Numbers()
        self._metrics: dict[str, _Numbers] = {}
        self._verdicts: dict[str, _Verdicts] = {}
        self._input_tokens = self._output_tokens = 0
        self._costs_usd = _Numbers()

    def add(self, case: CaseResult) -> None:
        """Count a case."""
        self._statuses[case.status] += 1
        self._scores.add(case.score)
        for iteration in case.iterations:
            for turn in iteration.turns:
                self._add_scores(turn.scores)
                if turn.usage is not None and case.id not in self._metered:
                    self._input_tokens += turn.usage.input_tokens or 0
                    self._output_tokens += turn.usage.output_tokens or 0
                    self._costs_usd.add(turn.usage.cost_usd or None)

    def _add_scores(self, scores: Iterable[Score]) -> None:
        for score in scores:
            if score.score is not None:
                if score.id not in self._metrics:
                    self._metrics[score.id], self._verdicts[score.id] = _Numbers(), _Verdicts()
                self._metrics[score.id].add(score.score)
                self._verdicts[score.id].add(score.passed)

    def summary(self, models: RunUsage | None = None) -> Summary:
        """Return the summary of the run.

        Args:
            models: the usage of all models that agenteval called: judges and model agents.
        """
        counts = self._statuses
        judged = counts["passed"] + counts["failed"] + counts["error"]
        asked = models or RunUsage()
        return Summary(
            cases=counts.total(),
            passed=counts["passed"],
            failed=counts["failed"],
            errors=counts["error"],
            skipped=counts["skipped"],
            pass_rate=counts["passed"] / judged if judged else None,
            score=self._scores.mean,
            metrics={
                name: MetricSummary(n=found.n, mean=found.mean, pass_rate=self._verdicts[name].rate)
                for name, found in self._metrics.items()
            },
            usage=RunUsage(
                input_tokens=asked.input_tokens + self._input_tokens,
                output_tokens=asked.output_tokens + self._output_tokens,
                llm_calls=asked.llm_calls,
                cost_usd=asked.cost_usd + self._costs_usd.total,
            ),
        )


@dataclass
class _Numbers:
    """Numbers whose sum does not depend on their order."""

    values: array[float] = field(default_factory=lambda: array("d"))

    def add(self, value: float | None) -> None:
        if value is not None:
            self.values.append(value)

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def total(self) -> float:
        return total(self.values)

    @property
    def mean(self) -> float | None:
        return self.total / self.n if self.n else None


@dataclass
class _Verdicts:
    """The number of passed verdicts among all verdicts."""

    n: int = 0
    passed: int = 0

    def add(self, passed: bool | None) -> None:
        if passed is not None:
            self.n += 1
            self.passed += passed

    @property
    def rate(self) -> float | None:
        return self.passed / self.n if self.n else None


def summarise(cases: Iterable[CaseResult], models: RunUsage | None = None, metered: Collection[str] = ()) -> Summary:
    """Return the summary of a whole run; see ``Tally``."""
    tally = Tally(metered)
    for case in cases:
        tally.add(case)
    return tally.summary(models)
