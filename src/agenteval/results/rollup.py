"""From scores to the status of turns, iterations, cases and runs; and whether a results file contradicts that."""

from __future__ import annotations

import itertools
import math
import re
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.records import dataclass, field
from agenteval.results.case import CaseResult, CaseStatus, IterationResult, NotAsked, Score, SuiteResult, TurnResult
from agenteval.results.model import OWN_NAME, Judging, MetricSummary, NotJudged, Results, RunUsage, Summary

if TYPE_CHECKING:
    from agenteval.suite.evaluation import Aggregate


# Retries stop after many failures of an agent, so cases differ in their number.
_ATTEMPTS = re.compile(r" \(after \d+ attempts\)$")


_TRACEBACK = "Traceback (most recent call last):"
#: The exception at the end of a traceback, with its text.
RAISED = re.compile(r"(?:^|[\s:])(?P<error>(?:\w+\.)*\w+(?:Error|Exception|Exit|Warning): (?P<text>.*))$")


def agent_errors(turns: Iterable[TurnResult]) -> frozenset[str]:
    """Return the errors of turns, without the number of attempts."""
    return frozenset(without_attempts(turn.error) for turn in turns if turn.error)


def without_attempts(error: str) -> str:
    """Return an error without the number of attempts."""
    return _ATTEMPTS.sub("", error)


def without_traceback(error: str) -> str:
    """Return an error with only the exception of a traceback; the case has all of it."""
    before, found, after = error.partition(_TRACEBACK)
    raised = RAISED.search(after) if found else None
    return f"{before}{raised['error']}" if raised else error


#: Key in the details of a rule-based score: the rules that had nothing to measure in the reply.
UNMEASURED = "unmeasured"


class MetricUse:
    """The metrics of one suite over its cases, which may be added in any order.

    Args:
        threshold: the suite's threshold of the aggregated score; ``None`` if the verdicts of metrics decide.

    Attributes:
        undecided: number of passed cases without a verdict; see ``is_undecided``.
    """

    def __init__(self, threshold: float | None = None) -> None:
        self._threshold = threshold
        self._skipped: set[str] = set()
        self._measured: set[str] = set()
        self._parts: dict[str, frozenset[str]] = {}
        self.undecided = 0

    def add(self, case: CaseResult) -> None:
        """Count a case."""
        self.undecided += is_undecided(case, self._threshold)
        for score in case.scores:
            if score.status != "skipped":
                self._measured.add(score.id)
                if score.status == "scored" and score.gating:
                    parts = _unmeasured_parts(score)
                    self._parts[score.id] = parts & self._parts.get(score.id, parts)
            elif score.gating and not score.not_asked:
                self._skipped.add(score.id)

    @property
    def unmeasured(self) -> list[str]:
        """The metrics that can decide and measured nothing in any reply of the suite, sorted by id.

        A metric was skipped for every reply, or a part of it, such as a rule, had nothing to measure in any reply.
        Metrics that a limit left out are not among them: ``Summary.judging`` counts their cases.
        """
        parts = (f"{name} ({part})" for name, found in self._parts.items() for part in found)
        return sorted((*(self._skipped - self._measured), *parts))


def is_undecided(case: CaseResult, threshold: float | None) -> bool:
    """Return whether a case passed although no metric gave a verdict: all of them are informational.

    Args:
        threshold: the threshold of the aggregated score, if the suite of the case has one.
    """
    return case.status == "passed" and not threshold and all(score.passed is None for score in case.scores)


def _unmeasured_parts(score: Score) -> frozenset[str]:
    listed = (score.details or {}).get(UNMEASURED) if score.kind == "rule" else None
    return frozenset(part for part in listed if isinstance(part, str)) if isinstance(listed, list) else frozenset()


#: Scores closer than this are the same: weighted sums of floats miss their threshold by less.
ROUNDING = 1e-9


def final_score(scores: Mapping[str, float | None], aggregate: Aggregate) -> float | None:
    """Return the final score of one answer, 0..1; ``None`` if no weighted metric has a score.

    Args:
        scores: metric id → score, 0..1, or ``None`` if absent; an absent score has no weight.
        aggregate: the method and the weights. A metric without a weight weighs 1; a metric with a weight of 0 or less
            is ignored.
    """
    weighted = [
        (score, aggregate.weights.get(name, 1.0))
        for name, score in scores.items()
        if score is not None and has_weight(name, aggregate)
    ]
    if not weighted:
        return None
    if aggregate.method == "average":
        total = math.fsum(score for score, _ in weighted) / len(weighted)
    else:
        total = math.fsum(score * weight for score, weight in weighted) / math.fsum(weight for _, weight in weighted)
    return min(1.0, max(0.0, total))


def has_weight(name: str, aggregate: Aggregate) -> bool:
    """Return whether a metric counts in the final score."""
    return aggregate.weights.get(name, 1.0) > 0


def passes(score: float | None, threshold: float) -> bool | None:
    """Return whether a score reaches the threshold; ``None`` without a score."""
    return None if score is None else score >= threshold - ROUNDING


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


class CaseTally:
    """Counts finished cases in any order, so that the summary does not need them afterwards.

    Args:
        metered: ids of cases answered by model agents; the usage of their turns is part of the models' usage.
    """

    def __init__(self, metered: Collection[str] = ()) -> None:
        self._metered = metered
        self._statuses: Counter[CaseStatus] = Counter()
        self._scores = _Numbers()
        self._metrics: dict[str, _MetricTotals] = {}
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
                    self._metrics[score.id] = _MetricTotals()
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
class _MetricTotals:
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
    """Return the summary of a whole run; see ``CaseTally``."""
    tally = CaseTally(metered)
    for case in cases:
        tally.add(case)
    return tally.summary(models)


_COUNTS = ("cases", "passed", "failed", "errors", "skipped")
_MOST_NAMED = 3


def check_consistent(results: Results, file: Path | str) -> None:
    """Check that the statuses and counts that a gate reads follow from the rest of the results.

    Args:
        results: a run with all its cases. Other tools have other rules, so theirs is not checked.

    Raises:
        ConfigError: they do not.
    """
    _refuse(results, contradictions(results), file)


def check_counts(results: Results, file: Path | str) -> None:
    """Check only the counts: a baseline can be of a version that had other rules for statuses; see above."""
    _refuse(results, wrong_counts(results), file)


def _refuse(results: Results, reasons: Iterator[str], file: Path | str) -> None:
    found = list(itertools.islice(reasons, _MOST_NAMED + 1)) if results.tool.name == OWN_NAME else []
    if found:
        why = "; ".join(found[:_MOST_NAMED] + ["…"] * (len(found) > _MOST_NAMED))
        message = f"the file contradicts itself, so it was changed after the run: {why}; run the suite again"
        raise ConfigError(Problem(message, file=str(file), kind=Kind.RESULTS))


def contradictions(results: Results) -> Iterator[str]:
    """Yield where statuses and counts, which the gate reads, do not follow from the rest of the results."""
    every = list(results.cases())
    cases = [case for _, case in every]
    times = Counter(case.id for case in cases)
    for case_id in (case_id for case_id, count in times.items() if count > 1):
        yield f"the case {case_id} is in it {times[case_id]} times"
    for suite, case in every:
        if (status := _status(case, suite)) != case.status:
            yield f"the case {case.id} has the status {case.status}, and its iterations make it {status}"
    yield from wrong_counts(results)


def wrong_counts(results: Results) -> Iterator[str]:
    """Yield the counts of the summary that are not those of the cases."""
    statuses = Counter(case.status for _, case in results.cases())
    counted = (statuses.total(), *(statuses[status] for status in ("passed", "failed", "error", "skipped")))
    for name, found in zip(_COUNTS, counted, strict=True):
        said = getattr(results.summary, name)
        if said != found:
            yield f"summary.{name} is {said:,}, and of its cases it is {found:,}"


def _status(case: CaseResult, suite: SuiteResult) -> CaseStatus:
    rule = strict_case_status if case.strict else case_status
    return rule([_iteration_status(item, suite) for item in case.iterations])


def _iteration_status(iteration: IterationResult, suite: SuiteResult) -> CaseStatus:
    status = iteration_status(iteration.turns)
    # Results do not contain the weights of a combined score, nor which metric's error is one of the case.
    is_certain = status == "failed" and suite.threshold is None
    is_certain = is_certain or any(turn.error for turn in iteration.turns)
    return status if is_certain and iteration.status != "error" else iteration.status
