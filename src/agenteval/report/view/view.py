"""Plain values that all reporters share. Reporters escape and arrange them.

Texts are not escaped here. Numbers are formatted here, so that all reports format them alike.
"""

from __future__ import annotations

import functools
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Self, TypeVar

from agenteval.core.records import dataclass, replace
from agenteval.gate.failures import Counts
from agenteval.results.case import CaseResult, CaseStatus, IterationResult, Score, SuiteResult, TurnResult
from agenteval.results.comparison import ComparedCase
from agenteval.results.model import Results, RunUsage
from agenteval.results.verdict import Condition, Gate, Verdict

T = TypeVar("T")


def cached_per_run(function: Callable[[Results], T]) -> Callable[[Results], T]:
    """Cache the result of a function for the run of its last call.

    Results never change. The cache does not keep the run alive.

    Args:
        function: returns an immutable value, because several callers get it.
    """
    run: weakref.ref[Results] | None = None
    answer: T

    @functools.wraps(function)
    def remembered(results: Results) -> T:
        nonlocal run, answer
        if run is None or run() is not results:
            answer = function(results)
            run = weakref.ref(results)
        return answer

    return remembered


NOTHING = "–"

_MOST_DECIMALS = 6

_FACTS_IN_A_LINE = 3

_REASON_IN_A_LINE = 500

_LONGEST_REASON = 10_000

_ITERATION_VERBS: dict[CaseStatus, str] = {"failed": "failed", "error": "could not be run in", "skipped": "skipped"}

_MINUTE, _HOUR = 60, 3600


@dataclass(frozen=True)
class GateView:
    """The gate's decision in words.

    Attributes:
        verdict: ``passed``, ``failed``, ``unproven`` or ``error``.
        headline: the verdict as one phrase: ``passed``, ``3 cases broke``.
    """

    verdict: Verdict
    headline: str
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    fails_job: bool = True
    conditions: tuple[Condition, ...] = ()

    @classmethod
    def of(cls, gate: Gate, warnings: tuple[str, ...]) -> Self:
        """Return a decision with warnings."""
        # Results of earlier versions have no conditions.
        reasons = () if gate.passed else gate.reasons
        conditions = gate.conditions or tuple(Condition(found=reason) for reason in reasons)
        fails_job = gate.exit_status != 0
        return cls(gate.verdict, gate.headline, gate.reasons, warnings, fails_job=fails_job, conditions=conditions)

    @property
    def passed(self) -> bool:
        """Whether the gate passes."""
        return self.verdict == "passed"

    @property
    def unmet(self) -> tuple[Condition, ...]:
        """The conditions that tell more than the headline; with one, its rule alone is worth no line."""
        return () if [item.found for item in self.conditions] == [self.headline] else self.conditions

    @property
    def further_reasons(self) -> tuple[str, ...]:
        """The reasons that the headline does not state."""
        return tuple(reason for reason in self.reasons if not f"{self.headline};".startswith(f"{reason};"))


def verdict_line(verdict: Verdict, headline: str) -> str:
    """Return ``failed: 1 of 2 cases failed``; the word alone if the headline adds nothing."""
    return verdict if headline in {"", verdict} else f"{verdict}: {headline}"


def view_of(gate: Gate, results: Results) -> GateView:
    """Return a decision on saved results, with the notes of their comparison as warnings."""
    return GateView.of(gate, tuple(results.comparison.notes) if results.comparison else ())


@dataclass(frozen=True)
class Fact:
    """One metric's result for a case, or the agent's failure (``id`` is then ``agent``).

    Attributes:
        values: ``0.00 < 1.00``, ``0.42``, ``error`` or ``skipped``.
        turn: 1-based, or ``None`` where the case has one turn only.
    """

    id: str
    values: str
    reason: str
    turn: int | None = None

    def __str__(self) -> str:
        place = f"turn {self.turn}: " if self.turn else ""
        # There may be thousands of these lines, and a reason may be as long as an answer.
        reason = f": {_short(self.reason, _REASON_IN_A_LINE)}" if self.reason else ""
        return f"{place}{_short(self.id, _REASON_IN_A_LINE)} {self.values}{reason}"


@dataclass(frozen=True)
class MetricRow:
    """One metric over the run.

    Attributes:
        pass_rate: share of passed scores.
        current: the mean over the cases with scores in both runs; without a baseline, over all cases.
        difference: ``current`` minus ``baseline``.
    """

    id: str
    n: int
    mean: float | None
    pass_rate: float | None
    current: float | None
    baseline: float | None = None
    difference: float | None = None
    regressed: bool = False

    @property
    def partial(self) -> bool:
        """Whether ``current`` differs from the mean of this run, because it omits cases."""
        return number(self.mean) != number(self.current)


def number(value: float | None) -> str:
    """Return a score with two decimals."""
    return NOTHING if value is None else f"{value:.2f}"


def distinct(left: float | None, right: float | None) -> tuple[str, str]:
    """Return two scores with enough decimals to differ visibly: never ``0.70 < 0.70``."""
    if left is None or right is None:
        return number(left), number(right)
    for decimals in range(2, _MOST_DECIMALS + 1):
        texts = f"{left:.{decimals}f}", f"{right:.{decimals}f}"
        if texts[0] != texts[1] or left == right:
            break
    return texts


def signed(value: float | None) -> str:
    """Return a difference of scores with its sign; only a difference of 0 is shown as 0."""
    if value is None:
        return NOTHING
    for decimals in range(2, _MOST_DECIMALS + 1):
        text = f"{value:+.{decimals}f}"
        if float(text) != 0:
            return text
    return "±0.00"


def percent(rate: float | None) -> str:
    """Return a rate as a whole percentage; only 1 is shown as 100 % and only 0 as 0 %."""
    if rate is None:
        return NOTHING
    text = f"{rate:.0%}"
    if text == "100%" and rate < 1:
        return ">99%"
    return "<1%" if text == "0%" and rate > 0 else text


def count(amount: int, noun: str, plural: str | None = None) -> str:
    """Return an amount with its noun: ``1 case``, ``2,000 cases``."""
    return f"{amount:,} {noun if amount == 1 else plural or noun + 's'}"


def money(dollars: float) -> str:
    """Return an amount of US dollars; small ones with four decimals."""
    return f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:.4f}"


def resource(name: str, amount: float) -> str:
    """Return an amount of latency (seconds), cost (US dollars) or tokens with its unit."""
    return money(amount) if name == "cost" else f"{amount:,.2f} s" if name == "latency" else f"{amount:,.0f}"


def from_cache(usage: RunUsage) -> str:
    """Return ``312 of 340 model calls from the cache, about $1.90 saved``; empty if the cache answered none."""
    if not usage.cached_calls:
        return ""
    calls = count(usage.cached_calls + usage.llm_calls, "model call")
    saved = f", about {money(usage.saved_usd)} saved" if usage.saved_usd else ""
    return f"{usage.cached_calls:,} of {calls} from the cache{saved}"


def duration(seconds: float) -> str:
    """Return a duration in hours and minutes, minutes and seconds, or seconds."""
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"


def headline(results: Results, gate: GateView) -> str:
    """Return the verdict in a few words, after ``interrupted`` if the run was."""
    return gate.headline if results.run.complete else f"interrupted: {gate.headline}"


@cached_per_run
def counts(results: Results) -> Counts:
    """Return the numbers of cases that the gate decided on: without those in quarantine."""
    rules = results.gate.rules if results.gate else None
    return Counts.of(results, frozenset(rules.quarantine if rules else ()))


def score_values(score: Score) -> str:
    """Return the score of a metric and its threshold, if it has one; else the status."""
    if score.status != "scored" or score.score is None:
        return score.status
    if score.threshold is None:
        return number(score.score)
    value, threshold = distinct(score.score, score.threshold)
    return f"{value} {'<' if score.score < score.threshold else '>='} {threshold}"


def score_reason(score: Score) -> str:
    """Return the reason for a score, or the metric's error."""
    return _short(score.error or score.reason or "", _LONGEST_REASON)


def shown_iteration(case: CaseResult) -> IterationResult | None:
    """Return the iteration that represents a case: the first with its status, else the first that did not pass."""
    for wanted in ([case.status], ["failed", "error", "skipped"], ["passed"]):
        for iteration in case.iterations:
            if iteration.status in wanted:
                return iteration
    return None


def facts(case: CaseResult) -> tuple[Fact, ...]:
    """Return why a case did not pass, by the iteration that represents it; for a skipped case, the missing data."""
    iteration = shown_iteration(case)
    if iteration is None:
        return ()
    turns = iteration.turns
    found = tuple(fact for turn in turns for fact in _turn_facts(turn, len(turns), case.status))
    # If a suite aggregates its scores, no score fails by itself.
    return found or (tuple(_lost_points(iteration)) if case.status == "failed" else ())


def _lost_points(iteration: IterationResult) -> Iterator[Fact]:
    """Yield the scores below 1, the lowest first."""
    lost = [
        (score.score, turn.index + 1 if len(iteration.turns) > 1 else None, score)
        for turn in iteration.turns
        for score in turn.scores
        if score.score is not None and score.score < 1
    ]
    for _, place, score in sorted(lost, key=lambda item: item[0]):
        yield Fact(score.id, score_values(score), score_reason(score), place)


def _turn_facts(turn: TurnResult, turns: int, status: str) -> Iterator[Fact]:
    place = turn.index + 1 if turns > 1 else None
    if turn.error:
        yield Fact("agent", "error", _short(turn.error, _LONGEST_REASON), place)
    for score in turn.scores:
        if score.passed is False or score.status == "error" or (status == "skipped" and score.status == "skipped"):
            yield Fact(score.id, score_values(score), score_reason(score), place)


def iterations_note(case: CaseResult) -> str:
    """Return ``failed 2 of 3 iterations``; empty for a single planned iteration, and if all of them passed."""
    total = len(case.iterations)
    statuses = Counter(iteration.status for iteration in case.iterations)
    if (total <= 1 and not case.unneeded) or statuses["passed"] == total:
        return ""
    if case.status == "passed":
        return f"passed {statuses['passed']} of {total} iterations"
    found = [f"{verb} {statuses[status]}" for status, verb in _ITERATION_VERBS.items() if statuses[status]]
    unneeded = f", {case.unneeded} more were not needed" if case.unneeded else ""
    return f"{', '.join(found)} of {count(total, 'iteration')}{unneeded}"


def why(case: CaseResult) -> str:
    """Return why the case did not pass, in one phrase; for a passed case, how many of its iterations passed."""
    note = iterations_note(case)
    if case.status == "passed":
        return note
    found = facts(case)
    texts = [str(fact) for fact in found[:_FACTS_IN_A_LINE]]
    if len(found) > _FACTS_IN_A_LINE:
        texts.append(f"and {len(found) - _FACTS_IN_A_LINE} more")
    reasons = "; ".join(texts) or _without_facts(case)
    return ": ".join(part for part in (note, reasons) if part)


def _without_facts(case: CaseResult) -> str:
    return "nothing was checked" if case.status == "skipped" else ""


def location(suite: SuiteResult, case: CaseResult) -> str:
    """Return the place of a case: ``path:line``."""
    return f"{suite.path}:{case.line}" if case.line else suite.path


def metric_rows(results: Results) -> list[MetricRow]:
    """Return every metric of the run in the order of the summary."""
    compared = {metric.id: metric for metric in results.comparison.metrics} if results.comparison else {}
    rows = []
    for name, metric in results.summary.metrics.items():
        row = MetricRow(name, metric.n, metric.mean, metric.pass_rate, metric.mean)
        if pair := compared.get(name):
            regressed = pair.fell
            row = replace(
                row, current=pair.current, baseline=pair.baseline, difference=pair.difference, regressed=regressed
            )
        rows.append(row)
    return rows


def score_change(results: Results) -> float | None:
    """Return the change of the mean score over the cases with scores in both runs; ``None`` if unknown."""
    if results.comparison is None:
        return None
    current = [case for case in results.comparison.cases if case.change != "removed"]
    if len(current) != results.summary.cases:
        return None
    pairs = [
        (case.score_before, case.score_after)
        for case in current
        if case.change not in {"changed", "new"} and case.score_before is not None and case.score_after is not None
    ]
    return sum(after - before for before, after in pairs) / len(pairs) if pairs else None


def has_all_cases(results: Results) -> bool:
    """Return whether the results contain every case of the run; those of a large run contain only some."""
    return len(results.cases()) == results.summary.cases


@cached_per_run
def metric_errors(results: Results) -> tuple[str, ...]:
    """Return the first error of each metric if its errors did not decide their cases; no other part shows them."""
    first: dict[str, str] = {}
    cases: dict[str, set[str]] = {}
    for suite in results.suites:
        for case in suite.cases:
            for score in _broken_scores(case) if case.status != "error" else ():
                first.setdefault(score.id, score_reason(score))
                cases.setdefault(score.id, set()).add(case.id)
    return tuple(
        f"{name} could not be computed in {count(len(cases[name]), 'case')}: {first[name]}" for name in first
    )


def _broken_scores(case: CaseResult) -> list[Score]:
    return [score for score in case.scores if score.status == "error"]


def got_worse(compared: ComparedCase) -> list[Fact]:
    """Return the metrics of a case whose score dropped, or that passed before and fail now."""
    worse = []
    for metric in compared.metrics:
        fell = metric.before is not None and (metric.after is None or metric.after < metric.before)
        if fell or (metric.passed_before and metric.passed_after is False):
            worse.append(_change_fact(metric.id, metric.before, metric.after, metric.reason))
    return worse


def got_better(compared: ComparedCase) -> list[Fact]:
    """Return the metrics of a case whose score rose, or that failed before and pass now."""
    better = []
    for metric in compared.metrics:
        rose = metric.after is not None and metric.before is not None and metric.after > metric.before
        if rose or (metric.passed_after and metric.passed_before is False):
            better.append(_change_fact(metric.id, metric.before, metric.after, None))
    return better


def _change_fact(name: str, before: float | None, after: float | None, reason: str | None) -> Fact:
    old, new = distinct(before, after)
    return Fact(name, f"{old} → {new}", _short(reason or "", _LONGEST_REASON))


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"
