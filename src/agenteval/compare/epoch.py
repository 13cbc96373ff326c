"""The epoch of the base branch: its runs since the last change, and when a long look at them is due."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from agenteval.compare.baseline_runs import is_score
from agenteval.compare.pairing import Match
from agenteval.compare.regression.cusum import REFERENCE_RUNS, is_due, may_become_due, next_sum
from agenteval.results.comparison import Comparison, PoolCase, PoolEntry
from agenteval.results.epoch import Epoch, EpochCause, EpochRun
from agenteval.results.model import Results

# Runs that an epoch keeps: the reference, and the newest ones.
_KEPT = 100


def epoch_of(baseline: Results) -> Epoch:
    """Return the epoch that a run of the base branch belongs to.

    The first run of a base branch and results of earlier versions have none; then it follows from the pool.
    """
    if baseline.epoch is not None and baseline.epoch.runs:
        return baseline.epoch
    return _begun(baseline.pool, None)


@dataclass(frozen=True)
class Watch:
    """What counts in the sums of an epoch.

    Attributes:
        gating: ids of the metrics that can fail the gate.
        min_effect: smallest drop that counts, 0..1.
        out: ids of the cases that do not count.
    """

    gating: frozenset[str]
    min_effect: float
    out: frozenset[str] = frozenset()


def epoch_after(entries: Sequence[PoolEntry], baseline: Results, comparison: Comparison, watch: Watch) -> Epoch:
    """Return the epoch after a run of the base branch.

    Args:
        entries: the run's entry in its pool, and those of its confirming runs; a new epoch begins with all of them.
    """
    cause = comparison.epoch_cause
    if cause is not None:
        return _begun(entries, cause)
    own, known = entries[0], epoch_of(baseline)
    if any(run.run_id == own.run_id for run in known.runs):
        return known
    before = max(baseline.pool, key=lambda entry: entry.created_at, default=None)
    left_out = watch.out | comparison.changed_cases
    run = _run(own, _levels(known.runs), before, left_out)
    sums = {
        name: next_sum(known.sums.get(name, 0.0), _reference(known.runs, name), level, watch.min_effect)
        for name, level in run.levels.items()
        if name in watch.gating
    }
    is_merge = run.commit != (known.runs[-1].commit if known.runs else None)
    return known.model_copy(
        update={
            "runs": _kept([*known.runs, run]),
            "sums": sums,
            "merges": known.merges + is_merge,
            "changed": sorted({*known.changed, *comparison.changed_cases}),
        }
    )


def looked_back(epoch: Epoch, anchor: str | None) -> Epoch:
    """Return an epoch after a long look that proved nothing.

    Args:
        anchor: the commit that the newest one ran beside; ``None`` if no commit could run.
    """
    found = {"anchor": anchor} if anchor is not None else {}
    return epoch.model_copy(update={"sums": dict.fromkeys(epoch.sums, 0.0), "merges": 0, **found})


def is_long_look_due(epoch: Epoch) -> bool:
    """Return whether a long look is due."""
    return is_due(epoch.sums.values(), epoch.merges) and len(commits_of(epoch)) > 1


def may_need_long_look(epoch: Epoch) -> bool:
    """Return whether a long look may be due after one more run."""
    return may_become_due(epoch.sums.values(), epoch.merges)


def commits_of(epoch: Epoch) -> tuple[str, ...]:
    """Return the commits of an epoch from its anchor on, oldest first."""
    commits = tuple(dict.fromkeys(run.commit for run in epoch.runs if run.commit))
    return commits[commits.index(epoch.anchor) :] if epoch.anchor in commits else commits


def runs_since(epoch: Epoch, commit: str | None) -> list[EpochRun]:
    """Return the runs of an epoch from those of a commit on, oldest first."""
    first = next((place for place, run in enumerate(epoch.runs) if run.commit == commit), 0)
    return epoch.runs[first:]


def _begun(entries: Sequence[PoolEntry], cause: EpochCause | None) -> Epoch:
    """Return an epoch that begins with some runs, oldest first."""
    ordered = sorted(entries, key=lambda entry: entry.created_at)
    runs = [_run(entry, {}, None, ()) for entry in ordered[:1]]
    for before, entry in pairwise(ordered):
        runs.append(_run(entry, _levels(runs), before, ()))
    merges = sum(one.commit != other.commit for one, other in pairwise(ordered))
    return Epoch(cause=cause, runs=runs, merges=merges)


def _run(entry: PoolEntry, levels: Mapping[str, float], before: PoolEntry | None, out: Collection[str]) -> EpochRun:
    own = {case_id: case for case_id, case in entry.cases.items() if case_id not in out}
    found = {name: fmean(values) for name, values in _means(own).items()}
    earlier = before.cases if before is not None else {}
    moved = {name: level + _step(name, own, earlier) for name, level in levels.items()}
    return EpochRun(commit=entry.commit, run_id=entry.run_id, created_at=entry.created_at, levels={**found, **moved})


def _means(cases: Mapping[str, PoolCase]) -> Mapping[str, list[float]]:
    found: dict[str, list[float]] = {}
    for case in cases.values():
        for name in case.scores:
            if scores := _valid(case, name):
                found.setdefault(name, []).append(fmean(scores))
    return found


def _valid(case: PoolCase, metric: str) -> list[float]:
    return [score for score in case.scores.get(metric, ()) if is_score(score)]


def _step(metric: str, now: Mapping[str, PoolCase], then: Mapping[str, PoolCase]) -> float:
    """Return the mean difference of a metric over the cases that two runs asked in the same way."""
    differences = [
        fmean(_valid(case, metric)) - fmean(_valid(before, metric))
        for case_id, case in now.items()
        if (before := then.get(case_id)) is not None
        and _valid(case, metric)
        and _valid(before, metric)
        and Match.of(case, before).allows(metric)
    ]
    return fmean(differences) if differences else 0.0


def _levels(runs: Sequence[EpochRun]) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for run in runs:
        found |= run.levels
    return found


def _reference(runs: Sequence[EpochRun], metric: str) -> list[float]:
    return [run.levels[metric] for run in runs if metric in run.levels][:REFERENCE_RUNS]


def _kept(runs: Sequence[EpochRun]) -> list[EpochRun]:
    if len(runs) <= _KEPT:
        return list(runs)
    return [*runs[:REFERENCE_RUNS], *runs[REFERENCE_RUNS - _KEPT :]]
