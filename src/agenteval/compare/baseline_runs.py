"""Selects the scores of baseline runs that can be compared with the current run, and notes the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from agenteval.compare.pairing import Match, own_cases
from agenteval.compare.pool import Pool
from agenteval.compare.regression.model import Scores
from agenteval.results.comparison import PoolCase, PoolEntry
from agenteval.results.model import Results


@dataclass(frozen=True)
class EarlierRuns:
    """The comparable scores of the baseline runs.

    Attributes:
        scores: for each run, the scores of cases and metrics that match the current run; invalid ones are lost.
        notes: messages about omitted cases, scores and runs.
    """

    run_ids: tuple[str, ...]
    scores: tuple[Scores, ...]
    notes: tuple[str, ...] = ()


def comparable_runs(current: Results, own: Scores, pool: Pool) -> EarlierRuns:
    """Return the runs of the pool, limited to cases and metrics that match the current run.

    Args:
        pool: the baseline runs; a case without a fingerprint counts as unchanged.
    """
    now = own_cases(current)
    changes = _Changes()
    broken = 0
    runs: dict[str, Scores] = {}
    for entry in pool.runs:
        runs[entry.run_id], unsound = _sound(_comparable_cases(entry, now, changes))
        broken += unsound
    kept = _of_usual_length(runs, own)
    notes = list(pool.notes)
    notes += changes.notes()
    if broken:
        notes.append(f"{_count(broken, 'score')} of earlier runs outside 0..1, left out")
    if len(kept) < len(runs):
        other = len(runs) - len(kept)
        notes.append(f"{_count(other, 'earlier run')} left out: another number of iterations than the others")
    return EarlierRuns(tuple(kept), tuple(kept.values()), tuple(notes))


@dataclass
class _Changes:
    """What changed since the baseline runs.

    Attributes:
        metrics: the runs with another configuration of a metric: metric → case id → run ids.
        same: the cases of which a run has the same configuration: metric → case ids.
    """

    questions: set[str] = field(default_factory=set)
    metrics: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    same: dict[str, set[str]] = field(default_factory=dict)

    def notes(self) -> Iterator[str]:
        """Yield a message for each kind of change."""
        if self.questions:
            asked = _count(len(self.questions), "case")
            yield f"the question of {asked} changed since the baseline runs: not compared"
        older: dict[str, set[str]] = {}
        for name, cases in sorted(self.metrics.items()):
            if never := cases.keys() - self.same.get(name, set()):
                number = _count(len(never), "case")
                yield f"the rules of {number} changed since the baseline runs ({name}): not compared"
            if runs := {run for case_id in cases.keys() - never for run in cases[case_id]}:
                older[name] = runs
        if older:
            number = _count(len(set[str]().union(*older.values())), "older run")
            yield f"{', '.join(older)} changed after {number}, of which only scores are kept: not compared with these"


def _comparable_cases(
    entry: PoolEntry, now: Mapping[str, PoolCase], changes: _Changes
) -> dict[str, dict[str, tuple[float | None, ...]]]:
    """Return the comparable scores of one run by case and metric, and record the changes."""
    found: dict[str, dict[str, tuple[float | None, ...]]] = {}
    for case_id, case in entry.cases.items():
        if now and case_id not in now:
            continue
        match = Match.of(now.get(case_id), case)
        if not match.question:
            changes.questions.add(case_id)
            continue
        for name in match.changed:
            changes.metrics.setdefault(name, {}).setdefault(case_id, set()).add(entry.run_id)
        for name in match.kept or ():
            changes.same.setdefault(name, set()).add(case_id)
        found[case_id] = {
            name: (*case.scores.get(name, ()), *[None] * case.lost.get(name, 0))
            for name in {**case.scores, **case.lost}
            if match.allows(name)
        }
    return found


def _sound(cases: Mapping[str, Mapping[str, tuple[float | None, ...]]]) -> tuple[Scores, int]:
    """Return the scores with invalid ones as lost ones, and the number of invalid ones."""
    scores = [score for metrics in cases.values() for values in metrics.values() for score in values]
    broken = sum(score is not None and not is_score(score) for score in scores)
    if not broken:
        return cases, 0
    return {
        case_id: {name: tuple(map(valid, values)) for name, values in metrics.items()}
        for case_id, metrics in cases.items()
    }, broken


def valid(score: float | None) -> float | None:
    """Return a score, or ``None`` for an invalid one."""
    return score if score is not None and is_score(score) else None


def is_score(value: float) -> bool:
    """Return whether a number is a valid score."""
    # NaN is invalid too.
    return 0 <= value <= 1


def _of_usual_length(runs: Mapping[str, Scores], own: Scores) -> Mapping[str, Scores]:
    """Omit runs whose number of iterations differs from the current run.

    If most runs differ, all are kept, and the comparison takes the difference into account.
    """
    lengths = {run_id: _lengths(run) for run_id, run in runs.items()}
    usual = _most_common(_lengths(own))
    if usual is None or _most_common(sum(lengths.values(), Counter())) != usual:
        return runs
    return {run_id: run for run_id, run in runs.items() if _most_common(lengths[run_id]) in {usual, None}}


def _lengths(run: Scores) -> Counter[int]:
    return Counter(len(scores) for metrics in run.values() for scores in metrics.values() if scores)


def _most_common(lengths: Mapping[int, int]) -> int | None:
    return max(lengths, key=lambda length: (lengths[length], length), default=None)


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"
