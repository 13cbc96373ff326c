"""The newest runs of the base branch, which every results file carries along."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from agenteval.compare.pairing import pool_entry
from agenteval.results.model import Comparison, PoolEntry, Results

# Among the details of a comparison: the cases that regressed by themselves, and the metrics whose means moved.
REGRESSED_CASES, MOVED_MEANS = "regressed_cases", "moved_means"


@dataclass(frozen=True)
class Pool:
    """Baseline runs that can be used, the oldest first, and what was left out."""

    runs: tuple[PoolEntry, ...]
    notes: tuple[str, ...] = ()


def baseline_pool(baseline: Results, current_run_id: str, window: int) -> Pool:
    """The runs that a baseline offers to compare with: those in its pool, itself among them.

    Args:
        baseline: the results file.
        current_run_id: of the run that is compared, which may be in the pool of a later one.
        window: newest runs that count.
    """
    runs = list(baseline.pool)
    if all(entry.run_id != baseline.run.id for entry in runs):
        runs.append(pool_entry(baseline, {}))
    by_id = {entry.run_id: entry for entry in sorted(runs, key=lambda entry: entry.created_at)}
    repeated = len(runs) - len(by_id)
    if current_run_id != baseline.run.id:
        by_id.pop(current_run_id, None)
    notes = (
        (f"the baseline's pool names {repeated} of its runs more than once; each counts once",) if repeated else ()
    )
    return Pool(tuple(by_id.values())[-window:], notes)


def extended_pool(
    own: PoolEntry, baseline: Results | None, comparison: Comparison | None, window: int
) -> list[PoolEntry]:
    """The pool that a run hands on: that of its baseline and itself, as far as no new epoch begins.

    Where a mean moved, or a simple rule says that the run got better or worse, the agent is another one, and what
    came before says nothing about it. Where single cases regressed, that is so for these cases.

    Args:
        own: the run's entry.
        baseline: what it was compared with.
        comparison: with it.
        window: newest runs that are kept.
    """
    if baseline is None or (comparison is not None and _is_new_epoch(comparison)):
        return [own]
    earlier = baseline_pool(baseline, own.run_id, window).runs
    # Of what another tool recorded nobody knows whether it still is the same question next time.
    others = [entry for entry in earlier if entry.run_id != own.run_id and _tells_questions_apart(entry)]
    broken = comparison.policy.get(REGRESSED_CASES, ()) if comparison is not None else ()
    return [*(_without(entry, broken) for entry in others), own][-window:]


def _tells_questions_apart(entry: PoolEntry) -> bool:
    return any(case.fingerprint for case in entry.cases.values())


def _is_new_epoch(comparison: Comparison) -> bool:
    if MOVED_MEANS in comparison.policy:
        return bool(comparison.policy[MOVED_MEANS])
    return comparison.verdict in {"regressed", "improved"}


def _without(entry: PoolEntry, case_ids: Collection[str]) -> PoolEntry:
    if not case_ids:
        return entry
    return entry.model_copy(
        update={"cases": {case_id: case for case_id, case in entry.cases.items() if case_id not in case_ids}}
    )
