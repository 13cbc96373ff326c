"""The pool: the newest runs of the base branch, which every results file contains."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from agenteval.compare.pairing import pool_entry
from agenteval.results.comparison import Comparison, PoolEntry
from agenteval.results.model import Results

# Keys in the details of a comparison: the cases that regressed individually, and the metrics whose means changed.
REGRESSED_CASES, MOVED_MEANS = "regressed_cases", "moved_means"


@dataclass(frozen=True)
class Pool:
    """Usable baseline runs, oldest first, and messages about omitted ones."""

    runs: tuple[PoolEntry, ...]
    notes: tuple[str, ...] = ()


def baseline_pool(baseline: Results, current_run_id: str, window: int) -> Pool:
    """Return the runs of a baseline: the runs in its pool and the baseline run itself.

    Args:
        baseline: the results of the baseline.
        current_run_id: id of the current run, which a later baseline may contain.
        window: maximum number of runs; the newest ones count.
    """
    runs = list(baseline.pool)
    if all(entry.run_id != baseline.run.id for entry in runs):
        runs.append(pool_entry(baseline, {}))
    by_id = {entry.run_id: entry for entry in sorted(runs, key=lambda entry: entry.created_at)}
    notes = []
    if repeated := len(runs) - len(by_id):
        notes.append(f"the baseline's pool contains {repeated} of its runs more than once; each counts once")
    if current_run_id != baseline.run.id:
        by_id.pop(current_run_id, None)
    scored = [entry for entry in by_id.values() if _has_scores(entry)]
    if empty := len(by_id) - len(scored):
        notes.append(f"{empty} of the baseline's runs left out: {'it has' if empty == 1 else 'they have'} no score")
    return Pool(tuple(scored)[-window:], tuple(notes))


def extended_pool(
    own: PoolEntry, baseline: Results | None, comparison: Comparison | None, window: int
) -> list[PoolEntry]:
    """Return the pool of a run: the pool of its baseline and the run itself.

    If a mean changed, or a simple rule reports a regression or an improvement, the pool restarts, because the agent
    has changed. Cases that regressed individually are removed from earlier runs.

    Args:
        own: the run's entry.
        baseline: the run that it was compared with.
        comparison: the result of the comparison.
        window: maximum number of runs; the newest ones are kept.
    """
    if baseline is None or (comparison is not None and _is_new_epoch(comparison)):
        return [own]
    earlier = baseline_pool(baseline, own.run_id, window).runs
    # Runs of other tools have no fingerprints, so later runs cannot check that their questions are the same.
    others = [entry for entry in earlier if entry.run_id != own.run_id and _tells_questions_apart(entry)]
    broken = comparison.policy.get(REGRESSED_CASES, ()) if comparison is not None else ()
    return [*(_without(entry, broken) for entry in others), own][-window:]


def _has_scores(entry: PoolEntry) -> bool:
    return any(scores for case in entry.cases.values() for scores in case.scores.values())


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
