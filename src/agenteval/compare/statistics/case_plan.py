"""Selects single cases with suspected regressions, and plans the number of re-runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agenteval.compare.statistics.case_counts import CaseCount, count_case, failures
from agenteval.compare.statistics.case_tables import candidate_totals, control_table, rerun_table
from agenteval.compare.statistics.correlation import within_run_correlation
from agenteval.compare.statistics.model import CaseRuns
from agenteval.compare.statistics.parameters import Confirm, GateParameters
from agenteval.compare.statistics.run_table import Runs
from agenteval.core.statistics import ROUNDING

# With a single baseline iteration, the comparison with the pool exceeds its error rate.
_LEAST_BASELINE = 2

# A case with its threshold
_Graded = tuple[CaseRuns, float]


@dataclass(frozen=True, kw_only=True)
class CasePlan:
    """The candidates of the first run and their planned re-runs.

    Args:
        proven: deterministic cases that always passed and now fail; they regressed without re-runs.
        reruns: candidates to re-run, most suspicious first.
        suspects: candidates that are not re-run, because no allowed number of re-runs can prove them.
        repeats: number of re-runs for each case of ``reruns``; 0 without any.
        testable: number of cases that could have been candidates; the correction for multiple tests uses it.
        correlation: correlation of iterations within a run.
        alpha: error rate for the single cases of this metric.
    """

    proven: tuple[CaseCount, ...]
    reruns: tuple[CaseCount, ...]
    suspects: tuple[CaseCount, ...]
    repeats: int
    testable: int
    correlation: float
    alpha: float


def plan_cases(cases: Sequence[CaseRuns], confirm: Confirm, alpha: float, parameters: GateParameters) -> CasePlan:
    """Select the candidates, and find the smallest number of re-runs that can prove a regression.

    Args:
        cases: the cases to compare.
        confirm: the kind of confirmation; ``off`` leaves all candidates suspects.
        alpha: error rate for the single cases of this metric.
        parameters: parameters of the gate.
    """
    graded = [(case, case.threshold) for case in cases if case.threshold is not None]
    counts = [(case, count_case(case, threshold)) for case, threshold in graded]
    proven = [count for case, count in counts if case.deterministic and _is_flip(count)]
    flipped = {count.case_id for count in proven}
    noisy = [count for _, count in counts if count.case_id not in flipped]
    candidates = sorted(
        (count for count in noisy if count.fell(parameters.case_drop)),
        key=lambda count: (count.fisher_p, count.case_id),
    )
    plan = CasePlan(
        proven=tuple(proven),
        reruns=(),
        suspects=tuple(candidates),
        repeats=0,
        testable=sum(_is_testable(count, parameters) for count in noisy),
        correlation=_correlation(graded, candidates, confirm, parameters),
        alpha=alpha,
    )
    return _with_reruns(plan, confirm, parameters)


def _correlation(
    graded: Sequence[_Graded], candidates: Sequence[CaseCount], confirm: Confirm, parameters: GateParameters
) -> float:
    """Return the correlation of iterations within a run, from the pool; a cautious default for a small pool."""
    found = within_run_correlation(_counts(case.baseline, threshold) for case, threshold in graded)
    if confirm == "against-base" and all(sum(map(bool, case.baseline)) < 2 for case, _ in graded):
        # This kind of confirmation works with a pool of one run, so the current run is needed for the estimate.
        # Changes of the pull request increase the estimate, so the case that changed most is omitted.
        first = candidates[0].case_id if candidates else None
        found = within_run_correlation(
            _counts((*case.baseline, case.current), threshold) for case, threshold in graded if case.case_id != first
        )
    return parameters.prior_correlation if found is None else found


def _counts(runs: Runs, threshold: float) -> list[tuple[int, int]]:
    return [(failures(run, threshold), len(run)) for run in runs]


def _is_flip(count: CaseCount) -> bool:
    return not count.baseline_failures and bool(count.current_failures)


def _is_testable(count: CaseCount, parameters: GateParameters) -> bool:
    total = count.baseline_failures + count.current_failures
    return _has_pool(count) and total in candidate_totals(count.design, parameters.case_drop)


def _has_pool(count: CaseCount) -> bool:
    return sum(count.design.baseline) >= _LEAST_BASELINE


def _with_reruns(plan: CasePlan, confirm: Confirm, parameters: GateParameters) -> CasePlan:
    """Return the plan with as many suspects to re-run as re-runs can prove."""
    if confirm == "off":
        return plan
    eligible = [count for count in plan.suspects if confirm == "against-base" or _has_pool(count)]
    chosen, repeats = eligible[: parameters.max_cases], parameters.min_repeats
    if chosen and confirm in {"rerun", "both"}:
        needed = _repeats_against_pool(plan, chosen[0], parameters)
        chosen, repeats = (chosen, needed) if needed else ([], repeats)
    if chosen and confirm in {"against-base", "both"}:
        count, needed = _repeats_against_control(plan, len(chosen), parameters)
        chosen, repeats = chosen[:count], max(repeats, needed)
    if not chosen:
        return plan
    rest = tuple(count for count in plan.suspects if count not in chosen)
    return replace(plan, reruns=tuple(chosen), suspects=rest, repeats=repeats)


def _repeats_against_pool(plan: CasePlan, first: CaseCount, parameters: GateParameters) -> int:
    """Return the fewest re-runs that prove a case like the most suspicious one, had it never failed; 0 for none."""
    for repeats in range(parameters.min_repeats, parameters.max_repeats + 1):
        table = rerun_table(first.design, repeats, plan.correlation, parameters.case_drop)
        if table.p(0, first.design.current, repeats) * max(plan.testable, 1) <= plan.alpha + ROUNDING:
            return repeats
    return 0


def _repeats_against_control(plan: CasePlan, most: int, parameters: GateParameters) -> tuple[int, int]:
    """Return the number of cases that can be proved at once, and the re-runs per agent; 0, 0 for none."""
    for cases in range(most, 0, -1):
        for repeats in range(parameters.min_repeats, parameters.max_repeats + 1):
            table = control_table(repeats, plan.correlation, parameters.case_drop)
            if table.p(0, repeats) * cases <= plan.alpha + ROUNDING:
                return cases, repeats
    return 0, 0
