"""Compares two finished runs; no case runs."""

from __future__ import annotations

from agenteval.compare.comparer import Comparer
from agenteval.compare.integrity.integrity import Integrity, with_ids_of
from agenteval.compare.policy import ComparePolicy
from agenteval.results.comparison import Comparison
from agenteval.results.model import Results
from agenteval.results.verdict import Unproven
from agenteval.run.baseline import FoundBaseline


def compare_finished(
    now: Results, baseline: FoundBaseline, policy: ComparePolicy, integrity: Integrity | None = None
) -> Comparison:
    """Compare two finished runs.

    Nothing runs again: the results alone decide. A selection of cases does not prove that the others still pass, or
    that they still exist: it is ``unproven``.

    Args:
        now: the run to check; not a shard.
        baseline: the earlier run.
        policy: the comparison policy.
        integrity: what was accepted; default: nothing.
    """
    then = with_ids_of(now, baseline.results)
    is_same = now.run.id == then.run.id
    notes = ("both files contain the same run, so nothing can differ",) if is_same else ()
    known = {case.id for _, case in now.cases()}
    covered = now.run.coverage
    is_part = covered is not None and bool(covered.selection_note)
    if is_part:
        known |= {case.id for _, case in then.cases()}
    comparison = Comparer(
        now,
        then,
        known,
        policy.without_confirmation(),
        notes=(*baseline.notes, *notes),
        integrity=integrity or Integrity(),
        rescored=baseline.rescored,
    ).decide()
    if not is_part:
        return comparison
    part = Unproven(what="part", text="only the selected cases can be compared", mended_by="change")
    verdict = comparison.verdict if comparison.verdict == "regressed" else "unproven"
    return comparison.model_copy(update={"verdict": verdict, "unproven": [part, *comparison.unproven]})
