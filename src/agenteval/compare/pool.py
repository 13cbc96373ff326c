"""The pool: the newest runs of the base branch since its last proven change, which every results file contains."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from agenteval.compare.run_scores import pool_entry
from agenteval.results.comparison import Comparison, PoolCase, PoolEntry
from agenteval.results.model import Results


@dataclass(frozen=True)
class Pool:
    """Usable baseline runs, oldest first, and messages about omitted ones."""

    runs: tuple[PoolEntry, ...]
    notes: tuple[str, ...] = ()

    def always_applied(self, planned: Mapping[str, int]) -> Mapping[str, frozenset[str]]:
        """Return for each case the ids of the metrics that were skipped in no iteration of any run.

        Args:
            planned: case id → iterations of the case today; earlier runs may have made fewer of all cases.
        """
        always: dict[str, dict[str, bool]] = {}
        for entry in self.runs:
            usual = entry.made_with.iterations if entry.made_with is not None else None
            for case_id, case in entry.cases.items():
                asked, known = _asked(case), always.setdefault(case_id, {})
                whole = max(asked.values(), default=0) if usual is None else min(usual, planned.get(case_id, usual))
                for name, count in asked.items():
                    known[name] = known.get(name, True) and count >= whole
        return {case_id: frozenset(name for name, yes in known.items() if yes) for case_id, known in always.items()}


def _asked(case: PoolCase) -> Mapping[str, int]:
    """Return the number of iterations, lost ones included, to which each metric applied."""
    return {name: len(case.scores.get(name, ())) + case.lost.get(name, 0) for name in {**case.scores, **case.lost}}


def baseline_pool(baseline: Results, current_run_id: str, window: int, unrelated: Collection[str] = ()) -> Pool:
    """Return the runs of a baseline: the runs in its pool and the baseline run itself.

    Args:
        window: maximum number of runs; the newest ones count.
        unrelated: commits whose runs do not count, because the base branch does not contain them any more.
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
    # Without any other run, those of another history still raise suspicion; they prove nothing.
    kept = [entry for entry in by_id.values() if entry.commit not in unrelated] or list(by_id.values())
    if gone := len(by_id) - len(kept):
        what = "its commit is" if gone == 1 else "their commits are"
        notes.append(f"{gone} of the baseline's runs left out: {what} not in the history of the base commit")
    scored = [entry for entry in kept if _has_scores(entry)]
    if empty := len(kept) - len(scored):
        notes.append(f"{empty} of the baseline's runs left out: {'it has' if empty == 1 else 'they have'} no score")
    return Pool(tuple(scored)[-window:], tuple(notes))


def extended_pool(
    own: PoolEntry,
    baseline: Results | None,
    comparison: Comparison | None,
    window: int,
    confirming: Iterable[PoolEntry] = (),
) -> list[PoolEntry]:
    """Return the pool of a run: the pool of its baseline and the run itself.

    If a mean is proven, declared or accepted to have changed, a new epoch begins: earlier runs are of another agent.
    Cases that are proven or accepted to have changed are removed from earlier runs. Nothing else resets the pool.

    Args:
        window: maximum number of runs; the newest ones are kept.
        confirming: entries of the same agent's confirming runs; a new epoch begins with them too.
    """
    if baseline is None:
        return [own.model_copy(update={"epoch": own.commit})]
    if comparison is not None and comparison.begins_epoch:
        first = own.model_copy(update={"begun_by": comparison.epoch_cause})
        return [entry.model_copy(update={"epoch": own.commit}) for entry in [first, *confirming][-window:]]
    earlier = baseline_pool(baseline, own.run_id, window).runs
    # Runs of other tools have no fingerprints, so later runs cannot check that their questions are the same.
    others = [entry for entry in earlier if entry.run_id != own.run_id and _tells_questions_apart(entry)]
    changed = comparison.changed_cases if comparison is not None else frozenset()
    epoch = (others[-1].epoch or others[0].commit) if others else own.commit
    return [*(without_cases(entry, changed) for entry in others), own.model_copy(update={"epoch": epoch})][-window:]


def _has_scores(entry: PoolEntry) -> bool:
    return any(scores for case in entry.cases.values() for scores in case.scores.values())


def _tells_questions_apart(entry: PoolEntry) -> bool:
    return any(case.fingerprint for case in entry.cases.values())


def without_cases(entry: PoolEntry, case_ids: Collection[str]) -> PoolEntry:
    """Return an entry without some cases."""
    if not case_ids:
        return entry
    return entry.model_copy(
        update={"cases": {case_id: case for case_id, case in entry.cases.items() if case_id not in case_ids}}
    )
