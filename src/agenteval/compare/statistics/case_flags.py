"""Flags of cases that are new, removed, flaky or quarantined."""

from __future__ import annotations

from dataclasses import dataclass

from agenteval.compare.statistics.case_counts import failures
from agenteval.compare.statistics.model import CaseRuns, MetricRuns
from agenteval.core.statistics import ROUNDING

# A case is flaky if its pass rate is between 0.1 and 0.9.
_FLAKY_RANGE = 0.4
_FLAKY_ITERATIONS = 10


@dataclass(frozen=True, kw_only=True)
class Annotations:
    """Case ids by flag, sorted.

    Args:
        new: only the pull request has scores.
        removed: only the baseline has scores.
        removed_passing: removed cases that mostly passed.
        flaky: between 10 and 90 % of at least ten baseline iterations passed.
        quarantined: excluded from every comparison.
    """

    new: tuple[str, ...]
    removed: tuple[str, ...]
    removed_passing: tuple[str, ...]
    flaky: tuple[str, ...]
    quarantined: tuple[str, ...]


def annotate(metric: MetricRuns) -> Annotations:
    """Return the flags of the cases of a metric."""
    cases = sorted(metric.cases, key=lambda case: case.case_id)
    removed = [case for case in cases if not case.current and any(case.baseline)]
    return Annotations(
        new=tuple(case.case_id for case in cases if case.current and not any(case.baseline)),
        removed=tuple(case.case_id for case in removed),
        removed_passing=tuple(case.case_id for case in removed if (_pass_rate(case) or 0.0) > 0.5),
        flaky=tuple(case.case_id for case in cases if _is_flaky(case)),
        quarantined=tuple(case.case_id for case in cases if case.quarantined),
    )


def _is_flaky(case: CaseRuns) -> bool:
    rate = _pass_rate(case)
    iterations = sum(len(run) for run in case.baseline)
    return rate is not None and iterations >= _FLAKY_ITERATIONS and abs(rate - 0.5) <= _FLAKY_RANGE + ROUNDING


def _pass_rate(case: CaseRuns) -> float | None:
    scores = tuple(score for run in case.baseline for score in run)
    if not scores or case.threshold is None:
        return None
    return 1 - failures(scores, case.threshold) / len(scores)
