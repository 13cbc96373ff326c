"""Makes the long look of a run of the base branch: its agent side by side with that of an early commit."""

from __future__ import annotations

from dataclasses import dataclass

from agenteval.compare.comparer import Comparer
from agenteval.compare.driving import driven
from agenteval.compare.epoch import looked_back
from agenteval.compare.long_look import long_look_of, shared_evidence
from agenteval.compare.regression.long_look import decide_long_look
from agenteval.compare.regression.model import Cost, Decision
from agenteval.core.errors import AgentEvalError
from agenteval.results.comparison import Comparison, PoolEntry
from agenteval.results.epoch import Epoch, LongLook
from agenteval.run.confirm.control import PreparedControl
from agenteval.run.confirm.proving import Proving
from agenteval.run.confirm.runs import ConfirmingRuns

_NONE = "the agent is deployed elsewhere, and no early commit of it"
_DIFFERENT = "it asks none of the questions of this run in the same way"


@dataclass(frozen=True)
class Looked:
    """A long look that was made.

    Attributes:
        epoch: the epoch after it, if it proved nothing.
        entries: its whole runs of the newest commit as entries of a pool.
    """

    look: LongLook
    cost: Cost
    epoch: Epoch
    entries: tuple[PoolEntry, ...] = ()


def look_back(comparer: Comparer, comparison: Comparison, runs: ConfirmingRuns, *, made: int) -> Looked:
    """Compare the newest commit with the oldest early commit whose agent runs.

    Args:
        runs: makes runs; the early commits are prepared.
        made: number of whole runs of the newest commit so far, for the names of further ones.
    """
    epoch = comparer.epoch(comparison, comparer.current.pool[:1])
    why = ""
    cost = Cost()
    for prepared in runs.early:
        if isinstance(prepared, AgentEvalError):
            why = why or str(prepared)
            continue
        commit = prepared.tree.commit if prepared.tree is not None else ""
        proving, decision = _decided(comparer, epoch, runs, prepared)
        if decision is None:
            why = why or f"commit {commit[:12]} cannot run: {_DIFFERENT}"
            continue
        cost = Cost(runs=cost.runs + decision.cost.runs, calls=cost.calls + decision.cost.calls)
        if decision.missing is not None and decision.missing.what == "control":
            why = why or f"commit {commit[:12]} cannot run: {decision.missing.why}"
            continue
        look = long_look_of(decision, epoch, commit)
        # What could not be finished is still due.
        after = looked_back(epoch, commit) if look.verdict == "unchanged" else epoch
        is_issue = comparer.policy.long_look == "issue"
        return Looked(
            look.model_copy(update={"is_issue": is_issue and look.verdict == "regressed"}),
            cost,
            after,
            tuple(proving.entries(after=made)),
        )
    look = LongLook(merges=epoch.merges, verdict="unproven", reason=why or _NONE)
    # Another attempt at every run would cost a set-up each time.
    return Looked(look, cost, looked_back(epoch, None))


def _decided(
    comparer: Comparer, epoch: Epoch, runs: ConfirmingRuns, prepared: PreparedControl
) -> tuple[Proving, Decision | None]:
    """Return the decision beside one early commit; ``None`` if the two have no case in common."""
    shared = runs.turn_to(prepared)
    evidence = comparer.sides.evidence
    if shared is not None:
        evidence = shared_evidence(evidence, epoch, shared)
    proving = Proving(runs, comparer.sides, evidence)
    if not evidence.first:
        return proving, None
    return proving, driven(decide_long_look(evidence, comparer.policy.settings), proving.answer)
