"""Finds the cases that passed before and fail now by metrics that no earlier run has scored by the same rules."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from agenteval.compare.gate_counts import some
from agenteval.compare.pairing import status_by
from agenteval.compare.phrases import count
from agenteval.compare.sides import Sides
from agenteval.results.case import CaseResult, SuiteResult
from agenteval.results.comparison import ComparedCase
from agenteval.results.verdict import Unproven
from agenteval.suite.model import OVERALL


def ungraded(sides: Sides, cases: Iterable[ComparedCase]) -> list[Unproven]:
    """Return the point that some failing cases were compared with nothing; empty without such cases.

    The base branch may have added or changed a metric since its last run, or a judge may have failed there. Then no
    earlier score tells whether the case is worse now, so it raises no suspicion and is not run again.
    """
    found: dict[str, Collection[str]] = {}
    for compared in cases:
        if compared.status_before == "passed" and compared.status_after == "failed":
            suite, case = sides.cases[compared.id]
            names = _failing(suite, case) - sides.scored_before(case.id)
            if names and status_by(case, names, suite.threshold) == "failed":
                found[case.name] = names
    if not found:
        return []
    metrics = some([f"'{name}'" for name in sorted(set[str]().union(*found.values()))])
    those = f"{count(len(found), 'case')} that passed in the baseline {'fails' if len(found) == 1 else 'fail'}"
    text = f"{those} by {metrics}, which no earlier run has scored in the same way: {some(list(found))}"
    return [Unproven(what="metric", text=text, mended_by="change")]


def _failing(suite: SuiteResult, case: CaseResult) -> set[str]:
    """Return the ids of the metrics that fail a case; of a suite that aggregates scores, the aggregate."""
    if suite.threshold is not None:
        return {OVERALL}
    return {score.id for score in case.scores if score.passed is False and score.gating}
