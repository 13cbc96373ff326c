"""Passes and failures of single cases."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from agenteval.compare.statistics.case_tables import CaseDesign, is_drop
from agenteval.compare.statistics.model import CaseRuns, Scores
from agenteval.core.statistics import ROUNDING, fisher_p


@dataclass(frozen=True, kw_only=True)
class CaseCount:
    """Iterations and failures of a case in the first run and in the baseline.

    Args:
        case_id: id of the case.
        design: numbers of iterations of the case, in each run of the baseline and in the current run.
        baseline_failures: failed iterations in all baseline runs.
        current_failures: failed iterations in the pull request's first run.
    """

    case_id: str
    design: CaseDesign
    baseline_failures: int
    current_failures: int

    @cached_property
    def fisher_p(self) -> float:
        """One-sided p-value of Fisher's test, not corrected for the selection of the case; used only for sorting."""
        return fisher_p(self.baseline_failures, sum(self.design.baseline), self.current_failures, self.design.current)

    def fell(self, drop: float) -> bool:
        """Return whether the pass rate dropped by at least ``drop``."""
        before = self.baseline_failures, sum(self.design.baseline)
        return is_drop(*before, self.current_failures, self.design.current, drop)


def count_case(case: CaseRuns, threshold: float) -> CaseCount:
    """Return the counts of a case with scores in both runs."""
    runs = [run for run in case.baseline if run]
    return CaseCount(
        case_id=case.case_id,
        design=CaseDesign(tuple(sorted(len(run) for run in runs)), len(case.current)),
        baseline_failures=sum(failures(run, threshold) for run in runs),
        current_failures=failures(case.current, threshold),
    )


def failures(scores: Scores, threshold: float) -> int:
    """Return the number of iterations below the threshold."""
    return sum(score < threshold - ROUNDING for score in scores)
