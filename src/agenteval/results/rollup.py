"""Computes the status of an iteration, a case and a run from scores."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from agenteval.results.case import CaseResult, CaseStatus, NotAsked, Score, TurnResult
from agenteval.results.summary import Judging, MetricSummary, NotJudged, RunUsage, Summary


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

    ``error`` if a turn had no answer, a fatal metric has an error, or a metric has an error and no other gave a
    verdict; ``failed`` if a metric failed; ``skipped`` if nothing could be scored or a judge was not called; else
    ``passed``.

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
    if all(score.status == "error" for score in applied):
        return "error"
    verdicts = {score.passed for score in applied} - {None}
    if not verdicts and any(score.gating for _, score in broken):
        return "error"
    if False in verdicts:
        return "failed"
    return "skipped" if any(score.not_asked and score.gating for _, score in scores) else "passed"


def aggregated_status(turns: Sequence[TurnResult], final: float | None, threshold: float | None) -> CaseStatus:
    """Return the status of an iteration of a case whose scores are aggregated.

    Args:
        turns: the turns in order.
        final: the aggregated score; ``None`` if a part of it is missing.
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

    The majority of the iterations decides, and a tie counts against the agent. Iterations that were not evaluated
    (``error`` or ``skipped``) are missing votes: the case passes or fails only if they could not change that.
    Otherwise it is an error, or skipped if no iteration is an error.
    """
    passed, failed = iterations.count("passed"), iterations.count("failed")
    missing = len(iterations) - passed - failed
    if passed > failed + missing:
        return "passed"
    if failed and failed >= passed + missing:
        return "failed"
    return _unevaluated(iterations)


def strict_case_status(iterations: Sequence[CaseStatus]) -> CaseStatus:
    """Return the status of a case that passes only if every iteration passes; one failed iteration fails it."""
    if "failed" in iterations:
        return "failed"
    return "passed" if set(iterations) == {"passed"} else _unevaluated(iterations)


def _unevaluated(iterations: Sequence[CaseStatus]) -> CaseStatus:
    return "error" if "error" in iterations else "skipped"


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
        self._metrics: dict[str, _Metric] = {}
        self._judging = _Judging()
        self._incomplete = 0
        self._input_tokens = self._output_tokens = 0
        self._costs_usd = _Numbers()

    def add(self, case: CaseResult) -> None:
        """Count a case."""
        self._statuses[case.status] += 1
        self._scores.add(case.score)
        self._judging.add(case)
        self._incomplete += not case.is_fully_evaluated
        for turn in case.turns:
            if turn.usage is not None and case.id not in self._metered:
                self._input_tokens += turn.usage.input_tokens or 0
                self._output_tokens += turn.usage.output_tokens or 0
                self._costs_usd.add(turn.usage.cost_usd or None)
        for score in case.scores:
            if score.status != "skipped":
                if score.id not in self._metrics:
                    self._metrics[score.id] = _Metric()
                self._metrics[score.id].add(score)

    def summary(self, models: RunUsage | None = None) -> Summary:
        """Return the summary of the run.

        Args:
            models: the usage of all models that agenteval called: judges and model agents.
        """
        counts = self._statuses
        judged = counts["passed"] + counts["failed"] + counts["error"]
        agents = RunUsage(
            input_tokens=self._input_tokens, output_tokens=self._output_tokens, cost_usd=self._costs_usd.total
        )
        return Summary(
            cases=counts.total(),
            passed=counts["passed"],
            failed=counts["failed"],
            errors=counts["error"],
            skipped=counts["skipped"],
            pass_rate=counts["passed"] / judged if judged else None,
            score=self._scores.mean,
            metrics={name: found.summary for name, found in self._metrics.items()},
            usage=(models or RunUsage()).plus(agents),
            not_fully_evaluated=self._incomplete,
            judging=self._judging.summary,
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
class _Metric:
    """The scores, verdicts and errors of one metric."""

    scores: _Numbers = field(default_factory=_Numbers)
    verdicts: int = 0
    passed: int = 0
    errors: int = 0
    gating: bool = False

    def add(self, score: Score) -> None:
        self.scores.add(score.score)
        self.errors += score.status == "error"
        self.gating |= score.gating
        if score.passed is not None:
            self.verdicts += 1
            self.passed += score.passed

    @property
    def summary(self) -> MetricSummary:
        return MetricSummary(
            n=self.scores.n,
            mean=self.scores.mean,
            pass_rate=self.passed / self.verdicts if self.verdicts else None,
            errors=self.errors,
            gating=self.gating,
        )


@dataclass
class _Judging:
    """The number of cases with a judge, and of those whose judge was not called, by reason."""

    cases: int = 0
    not_judged: Counter[NotAsked] = field(default_factory=Counter)

    def add(self, case: CaseResult) -> None:
        reason = next((score.not_asked for score in case.scores if score.not_asked and score.gating), None)
        self.cases += reason is not None or any(score.model for score in case.scores)
        if reason is not None:
            self.not_judged[reason] += 1

    @property
    def summary(self) -> Judging | None:
        if not self.not_judged:
            return None
        reasons = sorted(self.not_judged, key=lambda reason: (reason.cause, reason.limit))
        return Judging(
            cases=self.cases,
            judged=self.cases - self.not_judged.total(),
            not_judged=[
                NotJudged(cause=reason.cause, limit=reason.limit, cases=self.not_judged[reason]) for reason in reasons
            ],
        )


def summarise(cases: Iterable[CaseResult], models: RunUsage | None = None, metered: Collection[str] = ()) -> Summary:
    """Return the summary of a whole run; see ``Tally``."""
    tally = Tally(metered)
    for case in cases:
        tally.add(case)
    return tally.summary(models)
