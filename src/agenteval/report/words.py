"""Plain values that all reporters share. Reporters escape and arrange them.

Texts are not escaped here. Numbers are formatted here, so that all reports format them alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

from agenteval.core.escape import one_line
from agenteval.core.records import dataclass
from agenteval.results.case import CaseResult, CaseStatus, IterationResult, Score, SuiteResult, TurnResult
from agenteval.results.comparison import ComparedCase
from agenteval.results.model import RunUsage

NOTHING = "–"

_MOST_DECIMALS = 6

_FACTS_IN_A_LINE = 3

_REASON_IN_A_LINE = 500

_LONGEST_REASON = 10_000

_ITERATION_VERBS: dict[CaseStatus, str] = {"failed": "failed", "error": "could not be run in", "skipped": "skipped"}

_MINUTE, _HOUR = 60, 3600


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
            return text.replace("-", "−")
    return "±0.00"


def percent(rate: float | None) -> str:
    """Return a rate as a whole percentage; only 1 is shown as 100 % and only 0 as 0 %."""
    if rate is None:
        return NOTHING
    whole = round(100 * rate)
    return ">99 %" if whole == 100 and rate < 1 else "<1 %" if whole == 0 and rate > 0 else f"{whole} %"


def change(share: float) -> str:
    """Return a relative change: ``+62 %``."""
    text = f"{100 * share:+.0f} %"
    return text.replace("-", "−") if text[1:] != "0 %" else "±0 %"


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


def facts(case: CaseResult) -> tuple[Fact, ...]:
    """Return why a case did not pass, by the iteration that represents it; for a skipped case, the missing data."""
    iteration = case.telling_iteration
    if iteration is None:
        return ()
    turns = iteration.turns
    found = tuple(fact for turn in turns for fact in _turn_facts(turn, len(turns), case.status))
    # If a suite aggregates its scores, no score fails by itself.
    return found or (tuple(_lost_points(iteration)) if case.status == "failed" else ())


def _lost_points(iteration: IterationResult) -> Iterator[Fact]:
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


def got_worse(compared: ComparedCase) -> list[Fact]:
    """Return the metrics of a case whose score dropped, or that passed before and fail now."""
    worse = []
    for metric in compared.metrics:
        fell = metric.before is not None and (metric.after is None or metric.after < metric.before)
        if fell or (metric.passed_before and metric.passed_after is False):
            worse.append(_change_fact(metric.id, metric.before, metric.after, metric.reason))
    return worse


def _change_fact(name: str, before: float | None, after: float | None, reason: str | None) -> Fact:
    old, new = distinct(before, after)
    return Fact(name, f"{old} → {new}", _short(reason or "", _LONGEST_REASON))


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"


_LONGEST_MOMENT = 80
_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"))


def moment(text: str) -> str:
    """Format an ISO 8601 timestamp; other texts stay unchanged, on one line."""
    found = _parsed(text)
    return f"{found:%Y-%m-%d %H:%M} UTC" if found else one_line(text, _LONGEST_MOMENT)


def age(then: str, now: str) -> str:
    """Return the time between two moments; empty if unknown."""
    first, last = _parsed(then), _parsed(now)
    if first is None or last is None or last < first:
        return ""
    seconds = (last - first).total_seconds()
    for length, name in _UNITS:
        if seconds >= length:
            return count(int(seconds // length), name)
    return "less than a minute"


def short_commit(sha: str | None) -> str:
    """Return the short form of a commit."""
    return "".join(filter(str.isalnum, (sha or "").encode("ascii", "ignore").decode()))[:12]


def _parsed(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
