"""Formats the figures of an evaluation, and finds what it did not measure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from agenteval.results.case import CaseResult
from agenteval.results.model import Judging, Results, Summary

if TYPE_CHECKING:
    from agenteval.results.analysis.criteria import Check
    from agenteval.results.case import Criterion


_SHARES_OF_ALL = ("tool_calling.", "all_traces_successful")
_TIMES = frozenset({"avg_response_time", "max_response_time"})
_MOST_DECIMALS = 6


def check_label(check: Check) -> str:
    """Return the name of a criterion in reports: ``max response time``, ``quality: intent recognition``."""
    prefixes = {"performance": "", "quality": "quality: ", "functionality": "tool calls: "}
    return f"{prefixes[check.section]}{check.key.replace('_', ' ')}"


def criterion_texts(criterion: Criterion) -> tuple[str, str]:
    """Return the value and the limit of a criterion: ``1.84 s`` and ``at most 2.00 s``.

    Both have enough decimals to differ visibly if they differ.
    """
    value, threshold = criterion.value, criterion.threshold
    if threshold is None:
        return "–" if value is None else _write(criterion, value, 0), "–"
    texts = "–", _limit(criterion, threshold, 0)
    if value is not None:
        for more in range(_MOST_DECIMALS):
            texts = _write(criterion, value, more), _limit(criterion, threshold, more)
            is_exact = not set("<>") & set(texts[1])
            if is_exact and (criterion.met or texts[0] != _write(criterion, threshold, more)):
                break
    return texts


def _limit(criterion: Criterion, threshold: float, more: int) -> str:
    if criterion.name.startswith(_SHARES_OF_ALL):
        return "all"
    return f"{'at least' if _is_quality(criterion) else 'at most'} {_write(criterion, threshold, more)}"


def _write(criterion: Criterion, value: float, more: int) -> str:
    if _is_quality(criterion):
        return f"{value:.{3 + more}f}"
    return seconds(1000 * value, more) if criterion.name in _TIMES else percent(value, more)


def _is_quality(criterion: Criterion) -> bool:
    return criterion.name.startswith("quality.")


def percent(share: float, more: int = 0) -> str:
    """Format a share with one decimal or ``more``. Only a share of 1 is 100.0%, and only 0 is 0.0%."""
    decimals = 1 + more
    text = f"{share:.{decimals}%}"
    least = f"{10.0**-decimals:.{decimals}f}%"
    if float(text[:-1]) == 100 and share < 1:
        return f">{100 - 10.0**-decimals:.{decimals}f}%"
    return f"<{least}" if float(text[:-1]) == 0 and share > 0 else text


def seconds(milliseconds: float, more: int = 0) -> str:
    """Format a latency: ``840 ms``, ``12.30 s``, with ``more`` decimals if needed."""
    if 0 < milliseconds < 0.5 and not more:
        return "<1 ms"
    if round(milliseconds) < 1000:
        return f"{milliseconds:.{more}f} ms"
    return f"{milliseconds / 1000:,.{2 + more}f} s"


#: A metric without any score, the run's budget, or too many cases whose evaluation is incomplete.
What = Literal["metric", "budget", "cases"]
#: Who can mend it: the author of the change, or the operator of the judge and the budget.
MendedBy = Literal["change", "outside"]


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """Something that counts and was not measured.

    Attributes:
        text: for people, without a full stop.
    """

    what: What
    text: str
    cases: int
    mended_by: MendedBy


def unmeasured(
    results: Results, max_error_rate: float, quarantined: Collection[str] = frozenset()
) -> tuple[Unmeasured, ...]:
    """Return why a run does not prove what its statuses show; empty if everything that counts was measured.

    Args:
        results: the run. Only its summary is read, and the cases in quarantine.
        max_error_rate: share of cases (0..1) whose evaluation may be incomplete.
        quarantined: ids of cases that do not count.
    """
    left_out = [case for _, case in results.cases() if case.id in quarantined] if quarantined else []
    return (
        *_dead_metrics(results.summary, left_out),
        *_budget(results.summary.judging),
        *_incomplete_cases(results.summary, max_error_rate, left_out),
    )


def coverage_notes(results: Results) -> tuple[str, ...]:
    """Return short texts to show beside the numbers of cases: ``judged 50 of 60 cases (limit of 50 calls)``."""
    notes, summary = [], results.summary
    judging = summary.judging
    if judging is not None:
        limits = ", ".join(dict.fromkeys(item.limit for item in judging.not_judged))
        notes.append(f"judged {_of_cases(judging.judged, judging.cases)} ({limits})")
    if summary.not_fully_evaluated:
        notes.append(f"{_cases(summary.not_fully_evaluated)} not fully evaluated")
    undecided = sum(suite.undecided for suite in results.suites)
    if undecided:
        has = "has" if undecided == 1 else "have"
        notes.append(f"{undecided} of {_cases(summary.cases)} {has} no metric that decides")
    return tuple(notes)


def _dead_metrics(summary: Summary, left_out: Sequence[CaseResult]) -> Iterator[Unmeasured]:
    ignored = Counter(name for case in left_out for name in _errors(case))
    for name, metric in summary.metrics.items():
        errors = metric.errors - ignored[name]
        if metric.gating and errors and not metric.n:
            how = f"all {errors} attempts" if errors > 1 else "it"
            text = f"metric {name!r} has no score: {how} ended in an error"
            yield Unmeasured("metric", text, min(errors, summary.cases), "outside")


def _errors(case: CaseResult) -> Iterator[str]:
    """Yield the id of each metric that ended in an error."""
    return (score.id for score in case.scores if score.status == "error")


def _budget(judging: Judging | None) -> Iterator[Unmeasured]:
    if judging is None:
        return
    for item in judging.not_judged:
        if item.cause == "budget":
            text = f"{_of_cases(item.cases, judging.cases)} not fully judged: {item.limit}"
            yield Unmeasured("budget", text, item.cases, "outside")


def _incomplete_cases(
    summary: Summary, max_error_rate: float, left_out: Sequence[CaseResult]
) -> Iterator[Unmeasured]:
    cases = summary.not_fully_evaluated - sum(not case.is_fully_evaluated for case in left_out)
    counted = summary.cases - summary.skipped - sum(case.status != "skipped" for case in left_out)
    if cases > 0 and cases > max_error_rate * counted:
        text = f"{_of_cases(cases, counted)} not fully evaluated: a metric ended in an error"
        yield Unmeasured("cases", text, cases, "outside")


def _of_cases(part: int, total: int) -> str:
    return f"{part:,} of {total:,} {'case' if total == 1 else 'cases'}"


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"{count:,} cases"
