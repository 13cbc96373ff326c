"""Decides by their re-runs which single cases regressed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agenteval.compare.statistics.case_counts import CaseCount, failures
from agenteval.compare.statistics.case_plan import CasePlan
from agenteval.compare.statistics.case_tables import control_table, rerun_table
from agenteval.compare.statistics.model import CaseRuns, Scores
from agenteval.compare.statistics.parameters import Confirm, GateParameters
from agenteval.core.statistics import holm


@dataclass(frozen=True, kw_only=True)
class CaseFinding:
    """A case with a confirmed or suspected regression.

    Args:
        count: iterations and failures of the first comparison.
        repeats: number of counted re-runs, per agent; 0 without re-runs.
        rerun_failures: failed re-runs of the pull request; ``None`` if they are missing.
        p: p-value, corrected for the selection of the case, but not for the number of cases; with ``confirm: both``
            the larger of the two; ``None`` if the case was not tested.
        reason: why the case regressed or is only suspected, as text.
    """

    count: CaseCount
    repeats: int = 0
    rerun_failures: int | None = None
    p: float | None = None
    reason: str


@dataclass(frozen=True)
class CaseFindings:
    """Regressed cases, which fail the gate, and suspects, which are only listed."""

    regressed: tuple[CaseFinding, ...]
    suspects: tuple[CaseFinding, ...]


@dataclass(frozen=True)
class _Rerun:
    """A candidate with the failures of its re-runs; ``None`` if they are missing."""

    count: CaseCount
    failures: int | None
    control: int | None


def confirm_cases(
    plan: CasePlan, cases: Mapping[str, CaseRuns], confirm: Confirm, parameters: GateParameters
) -> CaseFindings:
    """Decide about the candidates of a plan by their re-runs.

    Args:
        plan: the plan from the first run.
        cases: the cases with their re-runs, by id. Only the planned number of re-runs counts; a case with fewer
            re-runs stays a suspect.
        confirm: the kind of confirmation in the plan.
        parameters: parameters of the gate.
    """
    reruns = [_rerun(count, cases[count.case_id], plan.repeats) for count in plan.reruns]
    tests = []
    if confirm in {"rerun", "both"}:
        tests.append((_against_pool(reruns, plan, parameters), plan.testable))
    if confirm in {"against-base", "both"}:
        tests.append((_against_control(reruns, plan, parameters), len(plan.reruns)))
    rejections = [_rejected(p_values, plan.alpha, family) for p_values, family in tests]
    regressed = [_proven(count) for count in plan.proven]
    suspects = []
    for rerun in reruns:
        name = rerun.count.case_id
        p_values = [p_values[name] for p_values, _ in tests if name in p_values]
        p = max(p_values) if len(p_values) == len(tests) else None
        if all(name in rejected for rejected in rejections):
            regressed.append(_finding(rerun, plan.repeats, p, _REGRESSED))
        else:
            suspects.append(_finding(rerun, plan.repeats, p, _MISSING if p is None else _NOT_CONFIRMED))
    unproven = _OFF if confirm == "off" else _NOT_PROVABLE
    suspects += [CaseFinding(count=count, reason=unproven) for count in plan.suspects]
    return CaseFindings(tuple(regressed), tuple(suspects))


_REGRESSED = "it failed again when it was re-run"
_NOT_CONFIRMED = "its re-runs do not confirm it"
_MISSING = "its re-runs are missing"
_OFF = "cases are not re-run with confirm: off"
_NOT_PROVABLE = "it was not re-run: too many candidates, or too few baseline runs to prove the regression of a case"


def _rerun(count: CaseCount, case: CaseRuns, repeats: int) -> _Rerun:
    return _Rerun(
        count,
        _first_failures(case.reruns, case.threshold, repeats),
        _first_failures(case.control_reruns, case.threshold, repeats),
    )


def _first_failures(scores: Scores, threshold: float | None, repeats: int) -> int | None:
    if threshold is None or len(scores) < repeats:
        return None
    return failures(scores[:repeats], threshold)


def _against_pool(reruns: list[_Rerun], plan: CasePlan, parameters: GateParameters) -> dict[str, float]:
    """Return p by case id, from the baseline runs and all iterations of the pull request."""
    p_values = {}
    for rerun in reruns:
        if rerun.failures is not None:
            count = rerun.count
            table = rerun_table(count.design, plan.repeats, plan.correlation, parameters.case_drop)
            p_values[count.case_id] = table.p(count.baseline_failures, count.current_failures, rerun.failures)
    return p_values


def _against_control(reruns: list[_Rerun], plan: CasePlan, parameters: GateParameters) -> dict[str, float]:
    """Return p by case id, from the re-runs of both agents alone."""
    if not reruns:
        return {}
    table = control_table(plan.repeats, plan.correlation, parameters.case_drop)
    return {
        rerun.count.case_id: table.p(rerun.control, rerun.failures)
        for rerun in reruns
        if rerun.failures is not None and rerun.control is not None
    }


def _rejected(p_values: Mapping[str, float], alpha: float, family: int) -> set[str]:
    names = sorted(p_values)
    verdicts = holm([p_values[name] for name in names], alpha, family)
    return {name for name, rejected in zip(names, verdicts, strict=True) if rejected}


def _proven(count: CaseCount) -> CaseFinding:
    return CaseFinding(count=count, reason="it involves no chance, always passed, and fails now")


def _finding(rerun: _Rerun, repeats: int, p: float | None, reason: str) -> CaseFinding:
    return CaseFinding(
        count=rerun.count,
        repeats=repeats,
        rerun_failures=rerun.failures,
        p=p,
        reason=reason,
    )
