"""Compares two finished runs; no case runs."""

from __future__ import annotations

from agenteval.compare.comparer import Comparer
from agenteval.compare.integrity.integrity import Integrity, with_ids_of
from agenteval.compare.policy import ComparePolicy
from agenteval.results.comparison import Comparison
from agenteval.results.model import Results
from agenteval.results.verdict import Unproven


def compare_finished(
    now: Results,
    then: Results,
    policy: ComparePolicy,
    notes: tuple[str, ...] = (),
    integrity: Integrity | None = None,
) -> Comparison:
    """Compare two finished runs.

    Nothing runs again: the results alone decide. A selection of cases does not prove that the others still pass, or
    that they still exist: it is ``unproven``.

    Args:
        now: the run to check; not a shard.
        then: the earlier run.
        policy: the comparison policy.
        notes: what the reader of the earlier run left out.
        integrity: what was accepted; default: nothing.
    """
    policy = policy.without_confirmation()
    if now.run.id == then.run.id:
        notes = (*notes, "both files contain the same run, so nothing can differ")
    accepted = integrity or Integrity()
    then = with_ids_of(now, then)
    known = {case.id for _, case in now.cases()}
    covered = now.run.coverage
    if covered is None or not covered.selection_note:
        return Comparer(now, then, known, policy, notes=notes, integrity=accepted).decide()
    known |= {case.id for _, case in then.cases()}
    comparison = Comparer(now, then, known, policy, notes=notes, integrity=accepted).decide()
    part = Unproven(what="part", text="only the selected cases can be compared", mended_by="change")
    verdict = comparison.verdict if comparison.verdict == "regressed" else "unproven"
    return comparison.model_copy(update={"verdict": verdict, "unproven": [part, *comparison.unproven]})
