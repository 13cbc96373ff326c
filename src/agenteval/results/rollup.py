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
from agenteval.results.case import (
    CaseResult,
    CaseStatus,
    IterationResult,
    NotAsked,
    Score,
    SuiteResult,
    TurnResult,
    Usage,
)
from agenteval.results.model import OWN_NAME, Judging, MetricSummary, NotJudged, Results, RunUsage, Summary

if TYPE_CHECKING:
    from agenteval.suite.evaluation import Aggregate


# Retries stop after many failures of an agent, so cases differ in their number.
_ATTEMPTS = re.compile(r" \(after \d+ attempts\)$")


_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
#: The exception at the end of a traceback, with its text.
RAISED = re.compile(r"(?:^|[\s:])(?P<error>(?:\w+\.)*\w+(?:Error|Exception|Exit|Warning): (?P<text>.*))$")


def agent_errors(turns: Iterable[TurnResult]) -> frozenset[str]:
    """Return the errors of turns, without the number of attempts."""
    return frozenset(without_attempts(turn.error) for turn in turns if turn.error)


def without_attempts(error: str) -> str:
    """Return an error without the number of attempts."""
    return _ATTEMPTS.sub("", error)


def without_traceback(error: str) -> str:
    """Return an error with only the exception of a traceback, and its place; the case has all of it."""
    before, found, after = error.partition(_TRACEBACK)
    raised = RAISED.search(after) if found else None
    if raised is None:
        return error
    frames = [frame for frame in _FRAME.finditer(after) if "site-packages" not in frame["file"]]
    place = f" ({Path(frames[-1]['file']).name}:{frames[-1]['line']})" if frames else ""
    return f"{before}{raised['error']}{place}"


#: Key in the details of a rule-based score: the rules that had nothing to measure in the reply.
UNMEASURED = "unmeasured"


def _unmeasured_parts(score: Score) -> frozenset[str]:
    listed = (score.details or {}).get(UNMEASURED) if score.kind == "rule" else None
    return frozenset(part for part in listed if isinstance(part, str)) if isinstance(listed, list) else frozenset()


#: Scores closer than this are the same: weighted sums of floats miss their threshold by less.
ROUNDING = 1e-9


def final_score(scores: Mapping[str, float | None], aggregate: Aggregate) -> float | None:
    """Return the final score of one answer, 0..1; ``None`` if no weighted metric has a score.

    An absent score has no weight. A metric without a weight weighs 1; one with a weight of 0 or less is ignored.
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
    """Return the status of an iteration whose scores are aggregated to ``final``; ``None`` if a part is missing."""
    if any(turn.error is not None for turn in turns):
        return "error"
    if final is None:
        broken = any(score.status == "error" for turn in turns for score in turn.scores)
        return "error" if broken else "skipped"
    return "passed" if threshold is None or passes(final, threshold) else "failed"


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


_DECIDED = frozenset({"passed", "failed"})


class CaseTally:
    """Counts the finished cases of a suite, in any order, so that nothing needs them afterwards.

    Args:
        threshold: the suite's threshold of the aggregated score; ``None`` if the verdicts of metrics decide.
        metered: ids of cases answered by model agents; the usage of their turns is part of the models' usage.

    Attributes:
        retried: number of turns that were retried, of retries, and of answers to these turns.
    """

    def __init__(self, threshold: float | None = None, metered: Collection[str] = ()) -> None:
        self._threshold = threshold
        self._metered = metered
        self.statuses: Counter[CaseStatus] = Counter()
        self.scores = array("d")
        self.metrics: dict[str, _MetricTotals] = {}
        self.judged = 0
        self.not_judged: Counter[NotAsked] = Counter()
        self.incomplete = 0
        self.tokens = (0, 0)
        self.costs_usd = array("d")
        self.undecided = 0
        self.retried = (0, 0, 0)
        self._skipped: set[str] = set()

    def add(self, case: CaseResult, position: int = 0) -> None:  # noqa: C901 - one pass
        """Count a case; metrics are in the order of the positions of their first cases."""
        self.statuses[case.status] += 1
        if case.score is not None:
            self.scores.append(case.score)
        is_broken = is_judged = has_verdict = False
        not_asked: NotAsked | None = None
        for iteration in case.iterations:
            for turn in iteration.turns:
                if turn.retries:
                    turns, retries, answered = self.retried
                    self.retried = (turns + 1, retries + turn.retries, answered + (turn.error is None))
                if turn.usage is not None and case.id not in self._metered:
                    self._spend(turn.usage)
                for place, score in enumerate(turn.scores):
                    has_verdict = has_verdict or score.passed is not None
                    is_judged = is_judged or bool(score.model)
                    if score.status != "skipped":
                        self._measure(score, (position, place))
                        is_broken |= score.status == "error" and score.gating and iteration.status in _DECIDED
                    elif score.gating:
                        not_asked = not_asked or score.not_asked
                        if not score.not_asked:
                            self._skipped.add(score.id)
        self.incomplete += is_broken
        self.judged += is_judged and not_asked is None
        if not_asked is not None:
            self.not_judged[not_asked] += 1
        self.undecided += case.status == "passed" and not self._threshold and not has_verdict

    def _spend(self, usage: Usage) -> None:
        read, written = self.tokens
        self.tokens = (read + (usage.input_tokens or 0), written + (usage.output_tokens or 0))
        if usage.cost_usd:
            self.costs_usd.append(usage.cost_usd)

    def _measure(self, score: Score, place: tuple[int, int]) -> None:
        found = self.metrics.get(score.id)
        if found is None:
            found = self.metrics[score.id] = _MetricTotals(place)
        found.add(score, place)

    @property
    def unmeasured(self) -> list[str]:
        """The metrics that can decide and measured nothing in any reply of the suite, sorted by id.

        A metric was skipped for every reply, or a part of it, such as a rule, had nothing to measure in any reply.
        Metrics that a limit left out are not among them: ``Summary.judging`` counts their cases.
        """
        parts = (f"{name} ({part})" for name, found in self.metrics.items() for part in found.unmeasured or ())
        return sorted((*(self._skipped - self.metrics.keys()), *parts))


@dataclass
class _MetricTotals:
    first: tuple[int, int]
    scores: array[float] = field(default_factory=lambda: array("d"))
    verdicts: int = 0
    passed: int = 0
    errors: int = 0
    gating: bool = False
    unmeasured: frozenset[str] | None = None

    def add(self, score: Score, place: tuple[int, int]) -> None:
        self.first = min(self.first, place)
        if score.score is not None:
            self.scores.append(score.score)
        if score.status == "error":
            self.errors += 1
        elif score.gating:
            parts = _unmeasured_parts(score)
            self.unmeasured = parts if self.unmeasured is None else self.unmeasured & parts
        self.gating = self.gating or score.gating
        if score.passed is not None:
            self.verdicts += 1
            self.passed += score.passed


def summary_of(tallies: Iterable[CaseTally], models: RunUsage | None = None) -> Summary:
    """Return the summary of a run, with the usage of all models that agenteval called: judges and model agents."""
    parts = list(tallies)
    statuses = [part.statuses for part in parts]
    passed, failed, errors = (sum(found[name] for found in statuses) for name in ("passed", "failed", "error"))
    metrics: dict[str, list[_MetricTotals]] = {}
    for part in parts:
        for name, found in part.metrics.items():
            metrics.setdefault(name, []).append(found)
    ordered = sorted(metrics, key=lambda name: min(found.first for found in metrics[name]))
    agents = RunUsage(
        input_tokens=sum(part.tokens[0] for part in parts),
        output_tokens=sum(part.tokens[1] for part in parts),
        cost_usd=total(_joined(part.costs_usd for part in parts)),
    )
    return Summary(
        cases=sum(found.total() for found in statuses),
        passed=passed,
        failed=failed,
        errors=errors,
        skipped=sum(found["skipped"] for found in statuses),
        pass_rate=passed / (passed + failed + errors) if passed + failed + errors else None,
        score=_mean(_joined(part.scores for part in parts)),
        metrics={name: _metric_summary(metrics[name]) for name in ordered},
        usage=(models or RunUsage()).plus(agents),
        not_fully_evaluated=sum(part.incomplete for part in parts),
        judging=_judging(parts),
    )


def _joined(parts: Iterable[array[float]]) -> array[float]:
    return array("d", b"".join(part.tobytes() for part in parts))


def _mean(values: Sequence[float]) -> float | None:
    return total(values) / len(values) if values else None


def _metric_summary(parts: Sequence[_MetricTotals]) -> MetricSummary:
    scores, verdicts = _joined(part.scores for part in parts), sum(part.verdicts for part in parts)
    return MetricSummary(
        n=len(scores),
        mean=_mean(scores),
        pass_rate=sum(part.passed for part in parts) / verdicts if verdicts else None,
        errors=sum(part.errors for part in parts),
        gating=any(part.gating for part in parts),
    )


def _judging(parts: Sequence[CaseTally]) -> Judging | None:
    not_judged = sum((part.not_judged for part in parts), Counter[NotAsked]())
    if not not_judged:
        return None
    judged = sum(part.judged for part in parts)
    reasons = sorted(not_judged, key=lambda reason: (reason.cause, reason.limit))
    return Judging(
        cases=judged + not_judged.total(),
        judged=judged,
        not_judged=[
            NotJudged(cause=reason.cause, limit=reason.limit, cases=not_judged[reason]) for reason in reasons
        ],
    )


def tally_of(cases: Iterable[CaseResult], threshold: float | None = None) -> CaseTally:
    """Return the counts of the cases of a suite, in its order."""
    tally = CaseTally(threshold)
    for position, case in enumerate(cases):
        tally.add(case, position)
    return tally


def summarise(cases: Iterable[CaseResult], models: RunUsage | None = None) -> Summary:
    """Return the summary of a whole run."""
    return summary_of([tally_of(cases)], models)


_COUNTS = ("cases", "passed", "failed", "errors", "skipped")
_MOST_NAMED = 3


def check_consistent(results: Results, file: Path | str) -> None:
    """Check that the statuses and counts that a gate reads follow from the rest of the results.

    Other tools have other rules, so theirs are not checked.
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
